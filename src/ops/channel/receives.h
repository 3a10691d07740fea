#pragma once

#include <limits>
#include <optional>
#include <span>

#include "ops/channel/delivery_window.h"
#include "ops/channel/receive_turns.h"
#include "ops/channel/transfer.h"

namespace brant {

/// Receives of small messages in host memory over the link of the two processes: the message comes complete in one
/// record, so that the record of a receive is its landing and little more, and none is needed if the message came
/// first.
class ChannelSmallReceives {
 public:
  explicit ChannelSmallReceives(ChannelEndpoint& end) noexcept : end_(end) {}

  /// A message of any size may come for it; this is what is likely, and which record it starts with.
  [[nodiscard]] bool suits(const Buffer& landing) const noexcept;
  /// The next message is for `landing`. in_progress, limit_reached, no_memory; not_supported: it has come, and is more
  /// than a landing is enough for.
  Status receive(Buffer landing, Op& op) noexcept;
  /// A message came complete. False: no small receive waits for it, or it is too long for that.
  bool land(std::uint64_t number, std::span<const std::byte> payload, bool acknowledged) noexcept;
  /// The message is no small one, or comes another way: its receive goes on as this. Null if there is no such receive,
  /// or no record is left: then it has ended, and the next receive gets its turn.
  Transfer* grow(std::uint64_t number) noexcept {
    SmallReceive* receive = find(number);
    return receive != nullptr ? grow(*receive) : nullptr;
  }
  void withdraw(SmallReceive& receive, Status why) noexcept;

 private:
  bool take_arrived(std::uint64_t number, Buffer landing, Op& op) noexcept;
  Status await(std::uint64_t number, Buffer landing, Op& op) noexcept;
  [[nodiscard]] SmallReceive* find(std::uint64_t number) noexcept {
    SmallReceive* receive = waiting_.front();
    while (receive != nullptr && receive->number < number) receive = decltype(waiting_)::next(*receive);
    return receive != nullptr && receive->number == number ? receive : nullptr;
  }
  Transfer* grow(SmallReceive& receive) noexcept;
  void give_back(SmallReceive& receive) noexcept;

  ChannelEndpoint& end_;
  IntrusiveList<SmallReceive, &SmallReceive::hook> waiting_;  ///< By number. The sender need not know of them.
};

/// The messages that one end receives: which receive gets which, up to where all have landed, and what the sender is
/// told of that.
class ChannelReceives {
 public:
  explicit ChannelReceives(ChannelEndpoint& end) noexcept;

  /// Receives the next message, or message `number` of the other end, which is told by other means; the latter receives
  /// may be posted in any order. Once for each number, and below (the first not received) + kWindowMessages, which the
  /// sender's window ensures: so every message must be received in finite time, whatever becomes of those before it. An
  /// end uses numbers for all receives or for none. invalid_argument for a message that was received already.
  /// `answer`: what the caller has found out about the landing.
  Status post(Buffer landing, Op& op, std::optional<std::uint64_t> number = std::nullopt,
              AskedMemory answer = {}) noexcept {
    return begin({.buffer = landing, .memory = answer}, op, number);
  }
  /// Into a shape that is laid on `landing`.
  Status post(Buffer landing, const Shape& shape, Op& op, std::optional<std::uint64_t> number = std::nullopt,
              AskedMemory answer = {}) noexcept;
  /// Goes on where an end was that had been closed. Before anything else.
  void resume(std::uint64_t next) noexcept;
  [[nodiscard]] ChannelSmallReceives& small() noexcept { return small_; }

  // How far it has come.
  /// All messages before this number were received.
  [[nodiscard]] std::uint64_t prefix() const noexcept { return landed_.prefix(); }
  [[nodiscard]] bool has_landed(std::uint64_t number) const noexcept { return landed_.has(number); }
  /// The other end's window lets it send this message, or did.
  [[nodiscard]] bool may_come(std::uint64_t number) const noexcept {
    return number < landed_.prefix() + kWindowMessages;
  }
  /// The next message is for the next receive, and may come.
  [[nodiscard]] bool in_turn() const noexcept {
    return turns_.in_order() && lost_.empty() && turns_.next() < never_comes_;
  }
  [[nodiscard]] ReceiveTurns& turns() noexcept { return turns_; }
  /// The first message that a receive waits for, if one does.
  [[nodiscard]] std::optional<std::uint64_t> first_pending() const noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept { return received_; }
  /// What has landed is told, without gaps, and nothing is known of others.
  [[nodiscard]] bool settled() const noexcept {
    return !landed_.has_gaps() && landed_.prefix() == landed_.told() && lost_.empty();
  }
  /// The prefix, which the sender is told now.
  std::uint64_t told_prefix() noexcept {
    landed_.tell();
    return landed_.told();
  }
  void tell_progress() noexcept;

  // What becomes of them.
  void carried(Transfer& transfer) noexcept;
  /// Brant itself has copied a message out of a pinned buffer or a slot, or could not.
  void copied(Transfer& transfer, Status status) noexcept;
  /// A small message is in its landing, and no transfer had to do with it.
  void count_small(std::uint64_t number, std::size_t bytes, bool acknowledged) noexcept;
  void withdraw(Transfer& transfer, Status why) noexcept;
  /// A receive was taken back: the next one gets its turn.
  void return_turn(const Transfer& transfer) noexcept {
    if (!transfer.numbered) turns_.give_back(transfer.number);
  }
  /// Tells its owner, and gives its record back.
  void end(Transfer& transfer, const OpResult& result) noexcept;

  // Messages that never come, and those that nobody receives.
  /// The other end sent messages below this number, and sends no more. Returns how many operations that ends.
  std::size_t end_after(std::uint64_t number) noexcept;
  /// The other end could not send a message.
  void on_not_sent(std::uint64_t number, std::uint64_t bytes, Status why) noexcept;
  /// The other end wants the source of a message back that only the network has.
  void on_abandoned(std::uint64_t number) noexcept;
  /// The receive that will ask for a message gets a status instead.
  void remember_lost(const LostMessage& message) noexcept;
  /// Takes a message from the network for nobody.
  void drain(std::uint64_t number) noexcept;
  /// Nobody will receive a message: both ends are closed.
  void tell_not_taken(std::uint64_t number) noexcept;
  /// The same of all below `number` that have no receive.
  void drop_before(std::uint64_t number) noexcept;

 private:
  /// What a post found out about its landing.
  struct Landing {
    Buffer buffer;  ///< With a shape: of so many bytes as that.
    Path path = Path::automatic;
    AskedMemory memory;
    const Shape* shape = nullptr;
  };

  Status begin(Landing what, Op& op, std::optional<std::uint64_t> number) noexcept;
  Status start(const Landing& what, Op& op, std::optional<std::uint64_t> number) noexcept;
  Status begin(Transfer& transfer) noexcept;
  Status landed(Transfer& transfer) noexcept;
  void settle_turn(Transfer& transfer, Status status) noexcept;
  void consumed(Transfer& transfer, Status status) noexcept;
  void count_landed(std::uint64_t number, std::uint64_t bytes) noexcept;
  void acknowledge_if_due(std::uint64_t number, bool acknowledged) noexcept;
  void note_withdrawn(Transfer& transfer, Status why) noexcept;
  void take_for_nobody(std::uint64_t number) noexcept;
  void drop(std::uint64_t number) noexcept;
  Transfer* find_with_network(std::uint64_t number, bool drains = false) noexcept;

  ChannelEndpoint& end_;
  Engine& engine_;
  LandedPrefix landed_;
  std::uint64_t wanted_prefix_ = 0;  ///< The sender waits for an acknowledgement up to here.
  std::uint64_t received_ = 0;
  ReceiveTurns turns_;
  std::uint64_t never_comes_ = std::numeric_limits<std::uint64_t>::max();  ///< Nor does any message after this one.
  LostMessages lost_;
  ChannelSmallReceives small_;
};

}  // namespace brant
