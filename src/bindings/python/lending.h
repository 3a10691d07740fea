#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "bindings/python/awaitable.h"
#include "bindings/python/call.h"
#include "bindings/python/member.h"
#include "brant/chare.h"

namespace brant::python {

/// A call whose arrays in memory of a device travel beside its message: holds them until the last may be written again.
class Lending final : public Awaitable {
 public:
  /// `entry`: the one that takes such arguments.
  Lending(CallPacker packer, const detail::EntryInfo& entry) noexcept : packer_(std::move(packer)), entry_(entry) {}

  /// Packs and posts the call: `open` gives the message for an entry and so many bytes.
  template <typename Open>
  void post(detail::Core& core, Open&& open) {
    list_sources();
    detail::DataSources taken(core, entry_, sources_.data(), metas_.data(), count_);
    hold();  // from here on its sources are told of, whatever happens
    detail::DataHeader header;
    header.place = taken.place();
    header.count = static_cast<std::uint32_t>(count_);
    const std::size_t metas = count_ * sizeof(detail::DataMeta);
    detail::Outgoing outgoing = open(entry_, sizeof header + metas + packer_.finish());
    std::memcpy(outgoing.args, &header, sizeof header);
    std::memcpy(outgoing.args + sizeof header, metas_.data(), metas);
    packer_.write(outgoing.args + sizeof header + metas);
    taken.hand_over(outgoing);
    detail::post(core, outgoing);
  }

  PyObject* take() override { return Py_NewRef(Py_None); }
  void advance() override;
  void give_up(Status) override {}

 private:
  void list_sources();

  CallPacker packer_;
  const detail::EntryInfo& entry_;
  std::array<detail::DataSource, detail::kDataMax> sources_;
  std::array<detail::DataMeta, detail::kDataMax> metas_;
  std::size_t count_ = 0;
  std::size_t pending_ = 0;
};

}  // namespace brant::python
