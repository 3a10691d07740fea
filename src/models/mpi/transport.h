#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/object_pool.h"
#include "brant/base/ids.h"
#include "models/mpi/early_data.h"
#include "models/mpi/envelope.h"
#include "models/mpi/landings.h"
#include "models/mpi/matching.h"
#include "models/mpi/per_process.h"
#include "models/mpi/request.h"
#include "ops/am/messenger.h"
#include "ops/lane/data_lanes.h"

namespace brant::mpi {

class Process;
class RankState;

/// How messages of the ranks of this process travel. Small data of host memory goes in the message itself, small data
/// of a device beside it by the lane of the two processes. All other data stays where it is until a receive has taken
/// its announcement, and goes by the lane then. Nothing unmatched ever stands in the window of a lane
/// (docs/decisions/0080).
///
/// The worker's thread. Nothing here waits or calls the program.
class Transport final : private Poller {
 public:
  /// Beyond this size data of host memory waits for its receive.
  static constexpr std::size_t kEagerMax = std::size_t{16} * 1024;
  /// Messages without a receive move out of their sender's window beyond this much of one sender.
  static constexpr std::size_t kEarlyUnitsMax = am::Messenger::kWindowUnits / 4;

  Transport(Engine& engine, Process& process);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// A small message of host memory that leaves within the call, and needs no record. False: it takes a request.
  [[nodiscard]] bool send_small(const Communicator& communicator, const TypedBuffer& source, int destination,
                                int tag) noexcept;
  void send(SendRequest& request) noexcept;
  void receive(ReceiveRequest& request) noexcept;
  /// The message was taken out of the matching for this request.
  void receive(ReceiveRequest& request, am::Message& message) noexcept;
  /// The first message that suits, which stays; null: none has come.
  [[nodiscard]] const am::Message* look_for(RankState& rank, const MatchKey& wanted) noexcept;
  /// The same, taken out.
  [[nodiscard]] am::Message* take_out(RankState& rank, const MatchKey& wanted) noexcept;
  [[nodiscard]] bool is_lost(RankId id) const noexcept;
  /// Nobody is left who could send what a receive from this source waits for.
  [[nodiscard]] bool is_hopeless(const Communicator& communicator, int source) const noexcept;
  /// Processes lost so far.
  [[nodiscard]] std::size_t losses() const noexcept { return losses_; }
  /// Of a request that goes.
  void forget(SendRequest& request) noexcept;
  void forget(ReceiveRequest& request) noexcept;

  /// Ends what waits for a process that is lost.
  void lose(Rank process) noexcept;
  /// Ends what waits for a rank of this process, which has ended its program.
  void lose_rank(RankId id) noexcept;
  /// Ends receives from a process, on the communicator with this context, that no message has come for.
  void give_up_receives(Rank process, std::uint64_t context) noexcept;
  /// One of the words about connections between jobs.
  [[nodiscard]] Status tell(Rank to, Word word, const DoorWord& body) noexcept;

  [[nodiscard]] Landings& landings() noexcept { return landings_; }

 private:
  static void on_message(void* self, am::Message& message) noexcept;
  static bool take_in_place(void* self, const am::WireHeader& header, std::span<const std::byte> data) noexcept;
  [[nodiscard]] static bool land_in_place(RankState& rank, const MatchKey& key,
                                          std::span<const std::byte> data) noexcept;
  static void on_trouble(void* self, Rank peer, Status status) noexcept;
  static void on_source_free(void* self, const OpResult& result) noexcept;
  [[nodiscard]] bool is_sound(const am::Message& message) const noexcept;
  void arrive(RankState& rank, am::Message& message) noexcept;
  void keep(RankState& rank, am::Message& message) noexcept;
  void land_announced(ReceiveRequest& request, am::Message& message) noexcept;
  void copy_within(ReceiveRequest& request, SendRequest& sender) noexcept;
  void lend_source(SendRequest& request, lane::DataOrigin& origin);
  void start_data(SendRequest& request, Envelope envelope) noexcept;
  [[nodiscard]] bool send_accompanied(SendRequest& request, RankId to) noexcept;
  void land_accompanied(ReceiveRequest& request, am::Message& message) noexcept;
  /// `request`: null for a label, which nobody waits for.
  void post(Rank to, am::Message& message, SendRequest* request, bool ends_when_sent) noexcept;
  [[nodiscard]] bool copy_to_posted(SendRequest& request, RankId to) noexcept;
  [[nodiscard]] bool send_at_once(Rank process, const Envelope& envelope, const TypedBuffer& source) noexcept;
  [[nodiscard]] Status send_label(const SendRequest& request, RankId to) noexcept;
  template <typename Body>
  Status say(Rank to, const Envelope& envelope, const Body& body) noexcept;
  unsigned poll() noexcept override;

  Engine& engine_;
  Process& process_;
  am::Messenger& messenger_;
  lane::DataLanes& lanes_;
  EarlyData early_data_;
  Landings landings_;
  ObjectPool<EarlyMessage> early_{std::size_t{1} << 30};
  PerProcess<std::size_t> early_units_;  ///< By sender: of its window, in messages without a receive.
  PerProcess<am::MessageList> waiting_;  ///< By receiver: messages for which there was no room.
  std::size_t waiting_count_ = 0;
  std::vector<bool> lost_;  ///< Of the job.
  std::size_t losses_ = 0;
  std::vector<RankId> ended_here_;  ///< Ranks of this process that have ended their programs.
};

}  // namespace brant::mpi
