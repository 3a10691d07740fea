#pragma once

#include <cstddef>
#include <cstdint>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/chare/detail/core.h"
#include "brant/ops/lane/data.h"
#include "brant/ops/lane/data_arguments.h"

/// The seam for arguments that travel as data apart from the message (include/brant/chare/device.h). In the message
/// stands a `DataBlock` in front of the other arguments: how many there are, how large, and where they come from.
namespace brant::detail {

using lane::DataOrigin;
using lane::LandingBlock;

/// Sources that were taken over and are not part of a message yet.
class BRANT_API DataSources {
 public:
  /// Finds out the kinds. Throws wrong_kind, invalid_argument (past the end of an allocation), limit_reached.
  DataSources(Core& core, const EntryInfo& entry, DataSource* sources, DataMeta* metas, std::size_t count);
  ~DataSources();
  DataSources(const DataSources&) = delete;
  DataSources& operator=(const DataSources&) = delete;

  [[nodiscard]] std::uint64_t place() const noexcept { return reinterpret_cast<std::uintptr_t>(first_); }
  /// They belong to the message from now on.
  void hand_over(Outgoing& outgoing) noexcept;

 private:
  Core& core_;
  DataOrigin* first_ = nullptr;
};

/// Where argument `index` of an invocation landed. `block`, unless it is null, gets the memory of the runtime that it
/// lies in, for the caller to drop: once, and null where a post entry named the landing.
BRANT_API Buffer landed_data(const Invocation& invocation, std::size_t index, LandingBlock** block) noexcept;

}  // namespace brant::detail
