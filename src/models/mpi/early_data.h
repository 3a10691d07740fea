#pragma once

#include <cstddef>
#include <cstdint>

#include "brant/base/ids.h"
#include "models/mpi/envelope.h"
#include "models/mpi/per_process.h"
#include "ops/am/message.h"
#include "ops/lane/data_lanes.h"

namespace brant::mpi {

/// Messages and their bytes: what a sender may have under way, and the payload of the word that gives it back.
struct EarlyCredit {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

/// Data of devices that travels beside its message without waiting for a receive. What finds none moves into memory of
/// the runtime, so that nothing unmatched stands in the window of a lane. Credits bound how much that is: a sender has
/// so many for each process, and gets them back when receives have taken its messages; without them it announces its
/// data (docs/decisions/0080).
class EarlyData {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{1} << 20;
  static constexpr EarlyCredit kCredit{.messages = 128, .bytes = std::uint64_t{16} << 20};
  /// As soon as so much has been taken, the sender is told.
  static constexpr EarlyCredit kTold{.messages = kCredit.messages / 4, .bytes = kCredit.bytes / 4};

  EarlyData(lane::DataLanes& lanes, int processes) : lanes_(lanes), in_use_(processes), taken_(processes) {}
  EarlyData(const EarlyData&) = delete;
  EarlyData& operator=(const EarlyData&) = delete;

  // The sender's side.
  /// False: it is in use.
  [[nodiscard]] bool take_credit(Rank to, std::size_t bytes) noexcept;
  void give_back(Rank to, const EarlyCredit& credit) noexcept;

  // The receiver's side.
  /// A receive has taken one: true where its sender is to be told.
  [[nodiscard]] bool count_taken(Rank from, std::uint64_t bytes) noexcept;
  /// What it is to be told, which counts as told.
  [[nodiscard]] EarlyCredit take_out_taken(Rank from) noexcept;
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
  PerProcess<EarlyCredit> in_use_;  ///< By receiver.
  PerProcess<EarlyCredit> taken_;   ///< By sender: what it has not been told of.
};

}  // namespace brant::mpi
