#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "brant/base/ids.h"
#include "models/mpi/envelope.h"
#include "ops/am/message.h"
#include "ops/lane/data_lanes.h"

namespace brant::mpi {

/// Small data of devices, which travels beside its message without waiting for a receive. What finds none moves into
/// memory of the runtime, so that nothing unmatched stands in the window of a lane. Credits bound how much that is: a
/// sender has so many for each process, and gets one back when a receive has taken its message; without one it
/// announces its data (docs/decisions/0080).
class EarlyData {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{64} * 1024;
  static constexpr std::uint32_t kCredits = 32;
  /// So many come back at a time.
  static constexpr std::uint32_t kCreditsBack = kCredits / 4;

  EarlyData(lane::DataLanes& lanes, int processes)
      : lanes_(lanes), in_use_(static_cast<std::size_t>(processes)), taken_(static_cast<std::size_t>(processes)) {}
  EarlyData(const EarlyData&) = delete;
  EarlyData& operator=(const EarlyData&) = delete;

  // The sender's side.
  /// False: all are in use.
  [[nodiscard]] bool take_credit(Rank to) noexcept;
  void give_back_credits(Rank to, std::uint32_t count) noexcept;

  // The receiver's side.
  /// A receive has taken one: true where its sender is to be told of `kCreditsBack` credits.
  [[nodiscard]] bool count_taken(Rank from) noexcept;
  /// Moves the data of a message that no receive suits into memory of the runtime. The message keeps where that is.
  Status fetch(am::Message& message, const Consignment& consignment) noexcept;
  /// Where the data is that `fetch` moved; null: it was not called.
  [[nodiscard]] static lane::DataPart* part_of(const am::Message& message) noexcept {
    return reinterpret_cast<lane::DataPart*>(static_cast<std::uintptr_t>(message.scratch[0]));
  }
  /// The data of a part that has come, as a source; the part goes. Null: no memory.
  [[nodiscard]] lane::DataOrigin* as_source(lane::DataPart& part) noexcept;

 private:
  lane::DataLanes& lanes_;
  std::vector<std::uint32_t> in_use_;  ///< Credits, by receiver.
  std::vector<std::uint32_t> taken_;   ///< By sender: what it has not been told of.
};

}  // namespace brant::mpi
