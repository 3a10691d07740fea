#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "brant/base/api.h"
#include "brant/base/archive.h"
#include "brant/chare/detail/core.h"
#include "brant/chare/detail/registry.h"
#include "brant/chare/index.h"

/// The untyped side of callbacks, sections and reductions: plain functions, implemented in
/// src/models/chare/gatherings*.cc.
namespace brant::detail {

/// Who acts together: all elements of a collection (section 0), or a section of them.
struct GatheringId {
  std::uint64_t section = 0;
  std::uint32_t collection = 0;
  std::uint32_t unused = 0;
  bool operator==(const GatheringId&) const noexcept = default;
};

enum class CallbackKind : std::uint8_t { ignore, exit, element, array, section, future, function, everyone };

/// Where a callback leads. Travels as bytes, and is compared as bytes.
struct CallbackTarget {
  ElementKey key;
  std::uint64_t section = 0;  ///< Or how many functions had the number before.
  std::uint32_t collection = 0;
  std::int32_t rank = -1;    ///< Of the future or the function.
  std::uint32_t number = 0;  ///< Of the future or the function; the exit code.
  std::uint16_t entry = 0;
  CallbackKind kind = CallbackKind::ignore;
  std::uint8_t unused = 0;
  bool operator==(const CallbackTarget&) const noexcept = default;
};

/// Bytes inside a message, aligned as the arguments of an entry are.
struct Blob {
  std::span<const std::byte> bytes;

  void serialize(auto& archive) {
    auto count = static_cast<std::uint64_t>(bytes.size());
    archive(count);
    archive.align(16);
    if constexpr (std::remove_reference_t<decltype(archive)>::reading) {
      bytes = {static_cast<const std::byte*>(archive.take_items(count, 1)), static_cast<std::size_t>(count)};
    } else {
      archive.bytes(bytes.data(), bytes.size());
    }
  }
};

/// What one rank has combined of a reduction so far.
class Partial {
 public:
  Partial() = default;
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;
  virtual ~Partial() = default;

  /// `value` points to the type that the reducer was made for. Throws LengthsDiffer.
  virtual void add(const void* value, const ElementKey& from) = 0;
  virtual void merge(ReadArchive& other) = 0;
  /// How it travels to the next rank, and what it has become at the end.
  virtual void measure(SizeArchive& archive, bool result) = 0;
  virtual void write(WriteArchive& archive, bool result) = 0;
};

/// Thrown while two arrays are combined; becomes an error that names both contributors.
struct LengthsDiffer {
  std::size_t first, second;
};

/// One operation on one type.
struct ReducerInfo : Registered {
  std::unique_ptr<Partial> (*make)() = nullptr;
};

/// Called for a contribution to a gathering by one of its elements.
struct Contribution {
  ChareBase* chare = nullptr;
  GatheringId gathering;
  const ReducerInfo* reducer = nullptr;
  const void* value = nullptr;
  const CallbackTarget* target = nullptr;
  const Waiting* waiting = nullptr;  ///< Who gets the result here, if it goes to everyone.
};
/// Throws invalid_argument for what does not fit the contributions of others.
BRANT_API void contribute(Core& core, const Contribution& contribution);

/// A message to be packed with the values of a callback, of `bytes` bytes. `message` is null if none is needed (then
/// what was to be done is done).
BRANT_API Outgoing open_callback(Core& core, const CallbackTarget& target, std::size_t bytes);
BRANT_API std::uint32_t expect_callback(Core& core, const Waiting& waiting);
BRANT_API CallbackTarget keep_function(Core& core, std::function<void(ReadArchive&)> function);
BRANT_API void destroy_callback(Core& core, const CallbackTarget& target);

/// Makes a section; all ranks are told. Throws invalid_argument for no members.
BRANT_API std::uint64_t define_section(Core& core, std::uint32_t collection, const std::vector<ElementKey>& members);
BRANT_API Outgoing open_multicast(Core& core, const GatheringId& gathering, std::uint16_t entry,
                                  const CallOptions& options, std::size_t bytes);

BRANT_API std::int32_t rank_of(Core& core) noexcept;

}  // namespace brant::detail
