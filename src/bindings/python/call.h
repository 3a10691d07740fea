#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "bindings/python/parcel.h"
#include "brant/chare.h"

/// What a call of a chare of Python, an answer and a contribution look like in a message: a header, then the items as a
/// channel's message has them, descriptions first.
namespace brant::python {

struct CallHeader {
  static constexpr std::uint16_t kTuple = 1;      ///< The first item is a pickle of all positional arguments.
  static constexpr std::uint16_t kKeywords = 2;   ///< The last one is a pickle of the named ones.
  static constexpr std::uint16_t kException = 4;  ///< Of an answer: an exception and its traceback.

  std::uint16_t method = 0;  ///< Its place among the entries of its class; of a construction the dimensions.
  std::uint16_t flags = 0;
  std::uint32_t items = 0;
  std::uint64_t description_bytes = 0;
  std::uint64_t content_bytes = 0;
};

/// A call that is being packed.
class CallPacker {
 public:
  explicit CallPacker(std::uint16_t method, std::uint16_t flags = 0) noexcept {
    header_.method = method, header_.flags = flags;
  }

  void add_arguments(nanobind::handle args, nanobind::handle kwargs);
  void add(nanobind::handle object);
  /// Arrays in memory of a device, or all, travel beside the message, up to eight of them. Whether there are any.
  bool set_apart(bool all) noexcept { return parcel_.set_apart(detail::kDataMax, all); }
  [[nodiscard]] const Parcel& parcel() const noexcept { return parcel_; }
  /// How large it is; nothing is added after that.
  [[nodiscard]] std::size_t finish();
  void write(std::byte* to) const noexcept;

 private:
  CallHeader header_;
  Parcel parcel_;
};

/// A call, an answer or a contribution as it came. Throws InvalidArgument for what contradicts itself, and what
/// unpickling throws.
struct CallContents {
  CallHeader header;
  nanobind::list objects;

  static CallContents read(ReadArchive& archive, const TakeApart& apart = {});
  /// What `add_arguments` took: a tuple and a dict or None.
  [[nodiscard]] std::pair<nanobind::tuple, nanobind::object> arguments() const;
};

}  // namespace brant::python
