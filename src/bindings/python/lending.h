#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <variant>

#include "bindings/python/awaitable.h"
#include "bindings/python/call.h"
#include "bindings/python/member.h"
#include "bindings/python/typed_call.h"
#include "brant/chare.h"

namespace brant::python {

/// A call whose arrays in memory of a device travel beside its message: holds them until the last may be written again.
class Lending final : public Awaitable {
 public:
  /// Of Python's chares, or of C++'s. `entry`: the one that takes such arguments.
  using Packer = std::variant<CallPacker, TypedCall>;

  Lending(Packer packer, const detail::EntryInfo& entry) noexcept : packer_(std::move(packer)), entry_(entry) {}

  /// Packs and posts the call: `open` gives the message for an entry and so many bytes.
  template <typename Open>
  void post(detail::Core& core, Open&& open) {
    list_sources();
    detail::DataSources taken(core, entry_, sources_.data(), metas_.data(), count_);
    hold();  // from here on its sources are told of, whatever happens
    detail::DataHeader header;
    header.place = taken.place();
    header.count = static_cast<std::uint32_t>(count_);
    const std::size_t metas = count_ * sizeof(detail::DataMeta), before = sizeof header + metas;
    detail::Outgoing outgoing = open(entry_, bytes_behind(before));
    std::memcpy(outgoing.args, &header, sizeof header);
    std::memcpy(outgoing.args + sizeof header, metas_.data(), metas);
    write_behind(before, outgoing.args);
    taken.hand_over(outgoing);
    detail::post(core, outgoing);
  }

  PyObject* take() override { return Py_NewRef(Py_None); }
  void advance() override;
  void give_up(Status) override {}

 private:
  void list_sources();
  void add_source(ConstBuffer memory, bool host_only);
  std::size_t bytes_behind(std::size_t before);
  void write_behind(std::size_t before, std::byte* message) const noexcept;

  Packer packer_;
  const detail::EntryInfo& entry_;
  std::array<detail::DataSource, detail::kDataMax> sources_;
  std::array<detail::DataMeta, detail::kDataMax> metas_;
  std::size_t count_ = 0;
  std::size_t pending_ = 0;
};

}  // namespace brant::python
