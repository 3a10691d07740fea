#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/base/shape.h"
#include "brant/chare/detail/core.h"
#include "brant/core/future.h"
#include "brant/ops/lane/data.h"

/// The seam for arguments that travel as data apart from the message (include/brant/chare/device.h). In the message
/// stands a `DataBlock` in front of the other arguments: how many there are, how large, and where they come from.
namespace brant::detail {

/// Data arguments that one call may have.
inline constexpr std::size_t kDataMax = 8;

using lane::DataMeta;
using lane::DataOrigin;
using lane::LandingBlock;

/// One data argument as the caller gave it.
struct DataSource {
  ConstBuffer buffer;
  Completion free;
  std::optional<Promise<ConstBuffer>> promise;
  std::optional<Shape> shape;  ///< How it lies in the buffer, if not in one run.
};

/// What `DataHeader::place` means.
enum class DataState : std::uint32_t {
  numbers,  ///< The number of the first in the hidden channel from the sender: as it travels.
  origins,  ///< DataOrigin*: the sources lie in this process.
  staging,  ///< DataCall*: they are coming into memory of the runtime, since their landing is not known yet.
  landing,  ///< DataCall*: they are coming where they belong.
  landed,   ///< DataCall*: all is here.
  none,     ///< Handed over.
};
struct DataHeader {
  std::uint64_t place = 0;
  DataState state = DataState::origins;
  std::uint32_t count = 0;
};
template <std::size_t N>
struct DataBlock {
  DataHeader header;
  DataMeta meta[N];
};

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
