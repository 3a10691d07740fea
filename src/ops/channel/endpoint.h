#pragma once

#include <memory>
#include <vector>

#include "brant/ops/channel.h"
#include "core/paths/path_choice.h"
#include "ops/channel/delivery_window.h"
#include "ops/channel/link_receiver.h"
#include "ops/channel/link_sender.h"
#include "ops/channel/stream_lane.h"
#include "ops/channel/traffic.h"
#include "ops/channel/transfer.h"

namespace brant {

class ChannelTable;

/// What one end tells the other apart from data, a few times per window: a record of the link, or an active message
/// where there is none.
struct ChannelControl {
  enum class Kind : std::uint32_t { opened, closed, acknowledge, truncated, not_taken, not_sent, abandoned, last };

  Kind kind = Kind::acknowledge;
  std::uint32_t channel = 0;
  std::uint32_t sender_side = 0;  ///< Side of the end that sends this control message.
  std::int32_t sender_rank = -1;
  std::uint32_t linked = 0;    ///< opened: that end uses the shared-memory link. closed: how often it was opened.
  std::uint64_t prefix = 0;    ///< Of closed to abandoned: all messages before this number have landed.
  std::uint64_t number = 0;    ///< closed, last (the program there has ended): so many were sent. truncated to
                               ///< abandoned: which message.
  Status status = Status::ok;  ///< not_taken: its receive failed; not_sent: it will not come. Why.
};

/// What is left of an end that was closed and has nothing under way: its numbers go on when it is opened again.
struct ClosedEnd {
  std::uint64_t next_send = 0;
  std::uint64_t next_receive = 0;
  std::uint32_t opened = 0;  ///< How often.
};

/// A message that no receive can have any more.
struct LostMessage {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  Status status = Status::ok;  ///< Of the receive that will ask for it.
  bool sender_knows = false;
};

/// One end of a channel. See `Channel` for the rules it keeps.
class ChannelEndpoint {
 public:
  ChannelEndpoint(ChannelTable& table, Peer& peer, ChannelId id, unsigned side, Path forced) noexcept;
  ~ChannelEndpoint();
  ChannelEndpoint(const ChannelEndpoint&) = delete;
  ChannelEndpoint& operator=(const ChannelEndpoint&) = delete;

  [[nodiscard]] Peer& peer() noexcept { return peer_; }
  [[nodiscard]] const Peer& peer() const noexcept { return peer_; }
  [[nodiscard]] ChannelId id() const noexcept { return id_; }
  [[nodiscard]] unsigned side() const noexcept { return side_; }
  [[nodiscard]] ChannelTable& table() noexcept { return table_; }
  [[nodiscard]] ChannelCounts counts() const noexcept;
  [[nodiscard]] bool idle() const noexcept { return live_ops_ == 0; }
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  /// Carries arguments of chares, which count what is under way themselves.
  [[nodiscard]] bool hidden() const noexcept { return hidden_; }
  [[nodiscard]] ChannelEnd account() const noexcept;
  /// Null if it is another layer's.
  static const ChannelOp* op_of(const PeerOp& op) noexcept {
    return op.lost == &ChannelEndpoint::on_lost ? static_cast<const ChannelOp*>(&op) : nullptr;
  }

  /// The path that a buffer would take; not_supported as in the posts. `mapped`: host memory that the peer can map,
  /// which a post finds out later.
  Status choose(MemoryKind kind, std::size_t bytes, Path& path, bool mapped = false) noexcept;
  /// The same for a post: messages of a channel are mostly alike.
  Status choose_again(MemoryKind kind, std::size_t bytes, Path& path) noexcept {
    const bool alike = kind == last_query_.kind && bytes == last_query_.bytes && !last_query_.mapped_source &&
                       host_accessible(kind) && last_choice_.status == Status::ok;
    path = last_choice_.path;
    return alike && path != Path::automatic ? Status::ok : choose(kind, bytes, path);
  }
  /// The same of a buffer to be sent, of any memory.
  Status path_of(ConstBuffer source, Path& path) noexcept;
  Status post_send(ConstBuffer source, Op& op) noexcept;
  Status post_recv(Buffer landing, Op& op) noexcept;
  /// Receives message `number` of the other end, which is told by other means; the receives may be posted in any order.
  /// Once for each number, and below (the first not received) + kWindowMessages, which the sender's window ensures: so
  /// every message must be received in finite time, whatever becomes of those before it. An end uses either this or
  /// `post_recv`. Outcomes as there; invalid_argument for a message that was received already.
  Status post_recv_at(std::uint64_t number, Buffer landing, Op& op) noexcept;
  /// The number that the next send gets: those that wait go first.
  [[nodiscard]] std::uint64_t next_send_number() const noexcept { return window_.next() + waiting_count_; }
  void on_control(const ChannelControl& control) noexcept;
  /// Refuses everything from now on, and ends what is pending: the two ends do not fit together, or a message was lost.
  void refuse(Status status) noexcept;
  void close() noexcept;
  /// The program of the other end has ended, and sent messages below this number: nothing else comes, nothing is taken.
  /// Returns how many sends and receives that ends.
  std::size_t end_after(std::uint64_t number) noexcept;
  /// Not open: it keeps what comes for it.
  void await_open() noexcept;
  /// Goes on where an end was that had been closed. Before anything else.
  void resume(const ClosedEnd& before) noexcept;
  /// The other end was closed for the `opened`th time, after `sent` messages.
  void on_closed(std::uint32_t opened, std::uint64_t sent) noexcept;
  void on_opened() noexcept {
    opened_there_ = true;
    other_closed_ = 0;
  }
  /// Closed, and nothing is under way or kept for it: `rest` is all there is to know.
  [[nodiscard]] bool settled() const noexcept;
  [[nodiscard]] ClosedEnd rest() const noexcept { return {window_.next(), landed_.prefix(), opened_}; }
  /// All messages before this number were received.
  [[nodiscard]] std::uint64_t received_prefix() const noexcept { return landed_.prefix(); }
  /// Something has ended or come. Of an end that is closed it may have been the last.
  void look_if_closed() noexcept {
    if (closed_) [[unlikely]]
      settle();
  }
  ListHook<ChannelEndpoint> closed_hook;  ///< In the table's list of ends that may have settled.
  /// See `Channel`.
  Status prepare_streams(std::chrono::nanoseconds patience, Op& op) noexcept;
  /// The lane of transfers triggered by streams, or why none can go.
  Result<StreamLane*> stream_lane() noexcept;
  void count_stream_send(std::size_t bytes) noexcept;
  /// Of an operation that ended inside the call.
  void count_outcome(Status status) noexcept;
  /// A closed end is opened again; the numbering goes on.
  void reopen(Path forced) noexcept;
  /// The messages are agreed upon over the link of the two processes; else by tags of the network alone.
  [[nodiscard]] bool linked() const noexcept { return linked_; }

  // For the link's halves.
  void on_link(const LinkMessage& message, std::span<const std::byte> payload) noexcept;
  [[nodiscard]] LinkMessage link_message(LinkMessage::Kind kind) const noexcept;
  [[nodiscard]] LinkMessage link_message(LinkMessage::Kind kind, const Transfer& transfer) const noexcept;
  /// Sends `transfer.here`.
  Status tag_send(Transfer& transfer) noexcept;
  Status tag_recv(Transfer& transfer, Buffer target) noexcept;
  /// The bytes have gone or come, or never will: `transfer.wire()` says what became of it.
  void carried(Transfer& transfer) noexcept;
  /// Whether the network takes memory of this process to or from the peer; `buffer_id`: its allocation, if it is a
  /// device's.
  [[nodiscard]] bool network_takes(const Buffer& memory, std::uint64_t buffer_id) noexcept;
  [[nodiscard]] MemoryKind mutual_kind() const noexcept { return mutual_kind_; }
  /// A send whose receive is late goes into a slot of the other end's. False if it cannot.
  bool send_early(Transfer& transfer, std::uint16_t slot) noexcept;
  /// The sender's device says that a message lies in its landing.
  void landed_early(Transfer& transfer, std::size_t bytes, bool acknowledged) noexcept;
  /// Gets a transfer the record of a copy, which goes with it: `transfer.move`. limit_reached.
  Status take_move(Transfer& transfer) noexcept;
  /// Gets it a pinned buffer besides; or why there is none.
  Status lease_stage(Transfer& transfer, std::size_t bytes) noexcept;
  void end_move(Transfer& transfer) noexcept;
  /// Starts a copy between device memory of this process and the pinned buffer of a transfer. in_progress, or why not.
  Status stage(Transfer& transfer, const Buffer& to, const Buffer& from, std::size_t bytes) noexcept;
  /// Copies the source into a pinned buffer first; the send goes on from there.
  Status stage_out(Transfer& transfer) noexcept;
  /// No word came of the receive of a send: it is asked for.
  void ask_late(Transfer& transfer) noexcept;
  [[nodiscard]] bool has_sent(std::uint64_t number) const noexcept { return number < window_.next(); }
  [[nodiscard]] bool has_landed(std::uint64_t number) const noexcept { return landed_.has(number); }
  /// The other end's window lets it send this message, or did.
  [[nodiscard]] bool may_come(std::uint64_t number) const noexcept {
    return number < landed_.prefix() + kWindowMessages;
  }
  /// A receive was taken back: the next one gets its turn.
  void return_number(const Transfer& transfer) noexcept {
    if (!transfer.numbered) returned_numbers_.push_back(transfer.number);
  }
  /// The message of a small receive is in its landing.
  void received(SmallReceive& receive, std::size_t bytes, bool acknowledged) noexcept;
  /// Its message is no small one, or comes another way: the receive goes on as this. Null if no record is left: it has
  /// ended, and the next receive gets its turn.
  Transfer* grown(SmallReceive& receive) noexcept;
  /// Lets the record of a receive go that nobody observes and whose turn was given to another.
  void dismiss(Transfer& transfer) noexcept;
  void note_truncated(std::uint64_t number) noexcept;

  // Failures that only one end sees (endpoint_failures.cc).
  /// The other end could not send a message.
  void on_not_sent(std::uint64_t number, std::uint64_t bytes, Status why) noexcept;
  /// Nobody will receive a message: both ends are closed.
  void tell_not_taken(std::uint64_t number) noexcept;
  /// The receive that will ask for a message gets a status instead.
  void remember_lost(const LostMessage& message) noexcept;
  /// Of a message that has a number, which the other end waits for: that is told.
  void fail_send(Transfer& transfer, Status status) noexcept;

  // Sources that their owners count on when the channel closes (endpoint_close.cc).
  /// The other end wants the source of a message back that only the network has: it is taken, and dropped.
  void drain(std::uint64_t number) noexcept;

 private:
  struct Watch : PeerOp {
    ChannelEndpoint* end = nullptr;
  };

  Engine& engine() noexcept { return engine_; }
  void use_link() noexcept;
  /// Of the receives only those of message `first` and later ones. Returns how many it withdrew.
  std::size_t end_pending(Status why, std::uint64_t first = 0) noexcept;
  Transfer* take_transfer(bool is_send) noexcept;
  void trace(const Transfer& transfer) noexcept;
  void note_begun(ChannelOp& op) noexcept {
    ++live_ops_;
    ++traffic_.moves;
    if (op.is_send && !hidden_) ++traffic_.sending;
    op.posted_at = engine_.trace() != nullptr ? Clock::now() : engine_.recently();
    op.lost = &ChannelEndpoint::on_lost;
    op.cancel = &ChannelEndpoint::on_cancel;
  }
  void note_ended(bool was_send) noexcept {
    --live_ops_;
    ++traffic_.moves;
    if (closed_) [[unlikely]]
      note_ended_late(was_send);
  }
  void note_ended_late(bool was_send) noexcept;
  void release(Transfer& transfer) noexcept;
  void attach(Transfer& transfer, Op& op) noexcept;

  // Sends.
  bool send_at_once(ConstBuffer source) noexcept;
  [[nodiscard]] bool goes_through_stage(Transfer& transfer) noexcept;
  Status begin_send(Transfer& transfer) noexcept;
  /// Tells the engine that the network works for us.
  Status noted(Status posted) noexcept;
  void count_send(Path path, std::uint64_t bytes) noexcept;
  void count_posted(int sign) noexcept;
  Status carry(Transfer& transfer, const Buffer& bytes) noexcept;
  void start_waiting() noexcept;
  /// The source is free: reports it and waits for the acknowledgement if that is wanted. Returns true if the transfer
  /// ended.
  bool source_freed(Transfer& transfer) noexcept;
  void end_send(Transfer& transfer, Status status) noexcept;
  Transfer* find_under_way(std::uint64_t number) noexcept;
  /// The other end has received a message, but not its bytes.
  void on_not_received(std::uint64_t number, Status status) noexcept;
  void acknowledge_sends(std::uint64_t prefix) noexcept;
  void free_sources() noexcept;
  void wait_for_sources(bool (*done)(void* self) noexcept) noexcept;
  void stop_waiting(std::chrono::nanoseconds waited) noexcept;
  void give_up_late(Transfer& transfer) noexcept;
  void let_go(Transfer& transfer) noexcept;
  [[nodiscard]] bool uses_source(const Transfer& transfer) const noexcept;
  [[nodiscard]] bool comes_free(const Transfer& transfer) noexcept;
  void settle() noexcept;
  void drop_unread() noexcept;
  void drop(std::uint64_t number) noexcept;
  template <typename Matches>
  [[nodiscard]] bool any_under_way(Matches&& matches) const noexcept;

  // Receives.
  Status receive(Buffer landing, Op& op, const std::uint64_t* number) noexcept;
  void on_abandoned(std::uint64_t number) noexcept;
  /// A message whose sender wants its source back: it is drained, and the receive that asks for it gets `canceled`.
  void take_for_nobody(std::uint64_t number) noexcept;
  [[nodiscard]] std::uint64_t take_receive_number() noexcept;
  Status begin_receive(Transfer& transfer) noexcept;
  /// The wire is done with it: ok and truncated count as consumed. Returns in_progress while the copy to the device
  /// runs.
  Status landed_on_wire(Transfer& transfer) noexcept;
  void end_receive(Transfer& transfer, Status status) noexcept;
  void consumed(Transfer& transfer, Status status) noexcept;
  void count_received(std::uint64_t number, std::uint64_t bytes) noexcept;
  void acknowledge_if_due(std::uint64_t number, bool acknowledged) noexcept;

  // Receives of small messages (endpoint_small.cc).
  [[nodiscard]] bool waits_for_small(const Buffer& landing) const noexcept;
  Status await_small(Buffer landing, Op& op) noexcept;
  bool take_small(Buffer landing, Op& op) noexcept;
  void count_small(std::uint64_t number, std::size_t bytes, bool acknowledged) noexcept;
  void withdraw_small(SmallReceive& receive, Status why) noexcept;
  void release(SmallReceive& receive) noexcept;
  /// Its turn is over, or another's.
  void settle_turn(Transfer& transfer, Status status) noexcept;
  bool take_lost(Transfer& transfer, Status& status) noexcept;
  [[nodiscard]] std::vector<LostMessage>::iterator find_lost(std::uint64_t number) noexcept;
  /// The receive of a message, or what drains it.
  Transfer* find_receive(std::uint64_t number, bool drains = false) noexcept;
  /// The same if the network has it.
  Transfer* find_with_network(std::uint64_t number, bool drains = false) noexcept;
  void send_control(ChannelControl::Kind kind, std::uint64_t number, Status status = Status::ok) noexcept;

  void on_stream_record(const LinkMessage& message, std::span<const std::byte> payload) noexcept;

  // Steps that complete later.
  static void on_wire_done(port::WireOp& wire) noexcept;
  static const MoveEvents kMoveEvents;
  /// Brant itself has moved the bytes.
  void moved(Transfer& transfer, Status status) noexcept;
  void staged_out(Transfer& transfer, Status status) noexcept;
  static void on_lost(PeerOp& op) noexcept;
  static void on_cancel(OpOwner& owner) noexcept;
  void withdraw(ChannelOp& op, Status why) noexcept;
  void withdraw(Transfer& transfer, Status why) noexcept;
  void withdraw_send(Transfer& transfer, Status why) noexcept;
  void withdraw_receive(Transfer& transfer, Status why) noexcept;
  /// Nor has anybody begun to: the program over there has ended, and never opened its end.
  [[nodiscard]] bool nobody_receives() const noexcept { return peer_.ended && !opened_there_; }
  [[nodiscard]] bool is_possible(const ChannelControl& control) const noexcept;
  Status final_status(const Transfer& transfer, Status status) noexcept;

  ChannelTable& table_;
  Engine& engine_;
  ChannelTraffic& traffic_;  ///< Of all channels.
  Peer& peer_;
  const ChannelId id_;
  const unsigned side_;
  const bool hidden_;
  Path forced_;
  PathQuery last_query_;  ///< And its answer: messages of a channel are mostly alike.
  PathChoice last_choice_;
  Status refused_ = Status::ok;
  bool closed_ = false;
  bool in_use_ = false;             ///< A call that moves the engine stands in this end.
  std::uint32_t opened_ = 0;        ///< How often.
  bool opened_there_ = false;       ///< The other end, at some time.
  std::uint32_t other_closed_ = 0;  ///< Unless 0 the other end is closed, and was opened so often.
  std::uint64_t other_sent_ = 0;    ///< So many messages, until it was closed.
  Watch watch_;                     ///< While closed: its peer's death settles it.
  bool linked_ = false;
  MemoryKind mutual_kind_ = MemoryKind::detect;  ///< See Engine::mutual_kind; known with the link.
  std::size_t live_ops_ = 0;
  ChannelCounts counts_;

  SendWindow window_;
  IntrusiveList<Transfer, &Transfer::endpoint_hook> waiting_;  ///< Sends that the window holds back, oldest first.
  std::uint64_t waiting_count_ = 0;
  IntrusiveList<Transfer, &Transfer::endpoint_hook>
      under_way_;  ///< Sends with the network or awaiting an acknowledgement.

  std::unique_ptr<LinkSender> link_sender_;  ///< Both halves are null if the processes share no memory.
  std::unique_ptr<LinkReceiver> link_receiver_;

  std::unique_ptr<StreamLane> stream_lane_;           ///< From `prepare_streams` on.
  std::optional<port::ExportRecord> stream_mailbox_;  ///< Of the other end, if it came before.
  bool streams_refused_ = false;                      ///< By the other end.

  LandedPrefix landed_;
  std::uint64_t next_receive_ = 0;
  std::vector<std::uint64_t> returned_numbers_;    ///< Of withdrawn receives: the next receives take them first.
  std::vector<LostMessage> lost_;                  ///< Those that no receive has asked for; of the window, so few.
  std::uint64_t never_comes_ = ~std::uint64_t{0};  ///< Nor does any message after this one.
  std::uint64_t wanted_prefix_ = 0;                ///< The sender waits for an acknowledgement up to here.
};

}  // namespace brant
