#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "core/engine.h"
#include "core/per_peer.h"
#include "ops/am/message.h"
#include "ops/am/message_loans.h"
#include "ops/am/message_pool.h"
#include "ops/am/messenger_link.h"

namespace brant::am {

/// Takes a message over; it is given back with `Messenger::release`. Called from inside progress (or inside `send`, for
/// a message to this process): no user code, no waiting; it may send.
using Handler = void (*)(void* context, Message& message) noexcept;

/// Takes a message where it arrived, without a record of its own, during the call. False: it wants the record. Else as
/// a Handler.
using InPlace = bool (*)(void* context, const WireHeader& header, std::span<const std::byte> payload) noexcept;

/// Something went wrong with a peer for good: it died (`peer_lost`), or a message of its was lost here (`no_memory`).
using TroubleHandler = void (*)(void* context, Rank peer, Status status) noexcept;

/// How a message deals with a full window.
enum class Flow : std::uint8_t {
  credit,  ///< limit_reached when the window is full.
  urgent,  ///< Goes all the same: for the few control messages of a protocol, which must not wait for user messages.
};

struct MessengerCounts {
  std::uint64_t sent = 0;        ///< To other processes.
  std::uint64_t received = 0;    ///< From other processes.
  std::uint64_t credits = 0;     ///< Credit messages sent: those that no message could carry.
  std::uint64_t refused = 0;     ///< Sends that found no room.
  std::uint64_t duplicates = 0;  ///< Messages that came twice and were dropped.
};

/// Host-side messages between the ranks of a job, for the models above. The messages of one pair arrive in the order
/// in which they were sent, whatever their size and whoever carries them. Between processes of one host a large message
/// stays where its sender packed it, and the receiving service reads it there (see Loans).
///
/// Bounded: at most 16 MiB (counted in units of 256 bytes, so at most 65536 small messages), plus one larger message,
/// travel to or wait at one peer; a message counts until the receiving service releases it. Then `send` answers
/// `limit_reached` and the caller keeps the message. Small messages allocate nothing in steady state.
///
/// One per runtime; the worker's thread.
class Messenger final : public Service, private Poller {
 public:
  static constexpr std::uint32_t kUnitBytes = 256;
  static constexpr std::uint32_t kWindowUnits = 65536;

  explicit Messenger(Engine& engine);
  ~Messenger() override;

  /// Takes over the messages of a service, those that came before the first claim among them. Null handler: they are
  /// dropped from now on.
  void claim(ServiceId service, Handler handler, TroubleHandler trouble, void* context,
             InPlace in_place = nullptr) noexcept;

  /// A message with room for a payload; null when memory is exhausted. Who makes it and does not send it releases it.
  Message* make(std::size_t payload_bytes) noexcept { return pool_.take(payload_bytes); }

  /// ok: taken over. Otherwise the caller keeps it: limit_reached (no room now: try again after progress), peer_lost,
  /// invalid_argument (no such rank), or what the wire says.
  Status send(Rank to, ServiceId service, Message& message, Flow flow = Flow::credit) noexcept;

  /// The same as `send`, of a few bytes to another process of this host, without a record: the payload goes from where
  /// it lies into the memory of that process, and is the caller's again. not_supported: it must go by `send`.
  Status send_at_once(Rank to, ServiceId service, std::span<const std::byte> header,
                      std::span<const std::byte> payload) noexcept;

  /// Gives a message back, and its room to the sender.
  void release(Message& message) noexcept;

  bool forget(Peer& peer) noexcept override;

  [[nodiscard]] const MessengerCounts& counts() const noexcept { return counts_; }
  /// Messages lent now, in all states. For tests.
  [[nodiscard]] std::size_t lent() const noexcept { return pool_.lent(); }

 private:
  using Link = MessengerLink;
  struct Claim {
    Handler handler = nullptr;
    TroubleHandler trouble = nullptr;
    InPlace in_place = nullptr;
    void* context = nullptr;
    bool made = false;  ///< Once at least: until then messages wait, as far as their senders' windows let them.
    MessageList early;
  };

  static std::uint32_t units_of(std::size_t payload_bytes) noexcept;
  Link* link_to(Rank rank, Status& why) noexcept {
    Link* const known = links_.find(rank.value);
    if (known == nullptr) [[unlikely]]
      return make_link(rank, why);
    why = known->trouble;
    return known;
  }
  Link* make_link(Rank rank, Status& why) noexcept;
  /// Whether the window of the peer has room; counts a refusal.
  [[nodiscard]] bool has_room(const Link& link, Flow flow) noexcept;
  Status carry(Link& link, Message& message, Flow flow) noexcept;
  [[nodiscard]] TimePoint now_if_traced() const noexcept;
  void count(Path path, std::int32_t peer, std::uint32_t sequence, std::size_t bytes, TimePoint left) noexcept;
  void trace(Path path, std::int32_t peer, std::uint32_t sequence, std::size_t bytes, TimePoint left) noexcept;
  static void on_sent(port::WireOp& op) noexcept;
  static void on_message(void* self, port::AmMessage& incoming) noexcept;
  static void on_record(void* self, const port::LinkRecord& record) noexcept;
  static void on_loan(void* self, const port::LinkRecord& record) noexcept;
  static void on_credit(void* self, port::AmMessage& incoming) noexcept;
  static void on_landed(port::WireOp& op) noexcept;
  static void on_lost(PeerOp& op) noexcept;
  void arrive(Link& link, Path path, const WireHeader& header, port::AmMessage& incoming) noexcept;
  [[nodiscard]] Link* link_from(std::int32_t source) noexcept;
  [[nodiscard]] Link* read_header(const port::LinkRecord& record, WireHeader& header) noexcept;
  void drop_damaged(std::int32_t source, port::AmMessage& incoming) noexcept;
  bool note_credit(Link& link, const WireHeader& header) noexcept;
  bool may_arrive(Link& link, const WireHeader& header) noexcept;
  [[nodiscard]] bool take_in_place(Link& link, Path path, const WireHeader& header,
                                   const port::AmMessage& incoming) noexcept;
  /// False: it came before, and is the caller's to drop.
  bool admit(Link& link, Path path, Message& message) noexcept;
  void count_arrival(Path path, std::size_t bytes) noexcept;
  bool land(Link& link, Message& message, port::AmMessage& incoming) noexcept;
  void hand_over_in_order(Link& link) noexcept;
  void hand_over(Message& message) noexcept;
  void report_if_due(Link& link) noexcept;
  void report_consumption(Link& link) noexcept;
  void give_up(Link& link, Status status) noexcept;
  unsigned poll() noexcept override;

  Engine& engine_;
  MessageLoans loans_;  ///< Its region outlives the pool's blocks in it.
  MessagePool pool_;
  PerPeer<Link> links_;
  std::array<Claim, kServices> claims_{};
  MessengerCounts counts_;
  std::uint32_t traced_locally_ = 0;  ///< Numbers for messages within the process, only with a trace.
};

}  // namespace brant::am
