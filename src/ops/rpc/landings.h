#pragma once

#include <cstddef>

#include "base/object_pool.h"
#include "brant/base/intrusive_list.h"
#include "ops/am/message.h"
#include "ops/lane/data_lanes.h"
#include "ops/rpc/carrier.h"

namespace brant::remote {

/// Calls whose data is coming, or is here and waits for the function to run. It comes into memory of the runtime, at
/// once, whatever becomes of the call: every number that a message announces is received in finite time (DataLanes).
class Landings {
 public:
  /// All data of a call is here, or will never be; from progress.
  using Came = void (*)(void* context, am::Message& message) noexcept;

  Landings(Carrier& carrier, Came came, void* context) noexcept
      : carrier_(carrier), lanes_(carrier.lanes()), came_(came), context_(context) {}
  Landings(const Landings&) = delete;
  Landings& operator=(const Landings&) = delete;

  /// Begins to take in the data of a call, and takes its message over until `came`, which may be now. False: it says
  /// what no process of the job writes, and is the caller's.
  bool take(am::Message& message) noexcept;
  /// Of a message that came: what became of its data.
  [[nodiscard]] static Status outcome(const am::Message& message) noexcept;
  [[nodiscard]] static Buffer landed(const am::Message& message, std::size_t index,
                                     lane::LandingBlock** block) noexcept;
  /// Its call has ended: what nobody has kept goes back.
  void close(am::Message& message) noexcept;
  /// The runtime ends. What comes later is nobody's, and the messages that wait for it go back.
  void abandon() noexcept;

 private:
  struct Call {
    Landings* landings = nullptr;
    am::Message* message = nullptr;
    lane::DataPart* parts = nullptr;  ///< In the order of the arguments; without those that could not even begin.
    std::size_t remaining = 0;        ///< Parts that are not there yet.
    Status status = Status::ok;
    ListHook<Call> hook;
  };

  [[nodiscard]] bool is_sound(const am::Message& message) const noexcept;
  void begin(Call& call, const lane::DataMeta& meta, lane::DataOrigin* origin, std::uint64_t number,
             lane::DataPart**& end) noexcept;
  void refuse(Call& call, const lane::DataMeta& meta, lane::DataOrigin* origin, std::uint64_t number,
              Status why) noexcept;
  void settle(lane::DataPart& part, Status status) noexcept;
  static void part_ended(lane::DataPart& part, Status status) noexcept;

  Carrier& carrier_;
  lane::DataLanes& lanes_;
  const Came came_;
  void* const context_;
  ObjectPool<Call> calls_{std::size_t{1} << 20};
  IntrusiveList<Call, &Call::hook> open_;
};

}  // namespace brant::remote
