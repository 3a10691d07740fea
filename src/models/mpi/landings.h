#pragma once

#include "models/mpi/early_data.h"
#include "models/mpi/request.h"
#include "ops/am/messenger.h"
#include "ops/lane/data_lanes.h"

namespace brant::mpi {

/// How data that has a receive gets into the buffer of that: from a message, from the lane, from memory of this
/// process. The size and the sender are in the request's outcome already; each call ends it, sooner or later.
class Landings {
 public:
  Landings(lane::DataLanes& lanes, am::Messenger& messenger, EarlyData& early_data) noexcept
      : lanes_(lanes), messenger_(messenger), early_data_(early_data) {}
  Landings(const Landings&) = delete;
  Landings& operator=(const Landings&) = delete;

  /// The data of an eager message, which goes.
  void land(ReceiveRequest& request, am::Message& message) noexcept;
  /// Data that came before its receive, or is still on its way into memory of the runtime.
  void land(ReceiveRequest& request, lane::DataPart& fetched) noexcept;
  /// Data that comes by the lane.
  void land(ReceiveRequest& request, Rank from, const Consignment& consignment) noexcept;
  /// Takes over one use of a source in this process. Null: there was no record for it.
  void copy(ReceiveRequest& request, lane::DataOrigin* origin) noexcept;

 private:
  static void on_fetched(lane::DataPart& part, Status status) noexcept;
  static void on_part_ended(lane::DataPart& part, Status status) noexcept;
  void take_part(ReceiveRequest& request, lane::DataPart& part, std::size_t bytes) noexcept;
  void settle(ReceiveRequest& request, Status status) noexcept;

  lane::DataLanes& lanes_;
  am::Messenger& messenger_;
  EarlyData& early_data_;
};

}  // namespace brant::mpi
