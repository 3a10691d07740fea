#pragma once

#include <optional>

#include "brant/ops/channel.h"
#include "core/memory_kinds.h"
#include "ops/channel/delivery_window.h"
#include "ops/channel/transfer.h"

namespace brant {

/// The messages that one end sends: numbered as they leave, in a window that the other end moves on.
class ChannelSends {
 public:
  using Transfers = IntrusiveList<Transfer, &Transfer::endpoint_hook>;

  explicit ChannelSends(ChannelEndpoint& end) noexcept;

  /// `answer`: what the caller has found out about the source.
  Status post(ConstBuffer source, Op& op, AskedMemory answer = {}) noexcept {
    return begin({.buffer = source, .memory = answer}, op);
  }
  /// The bytes of a shape that is laid on `source`.
  Status post(ConstBuffer source, const Shape& shape, Op& op, AskedMemory answer = {}) noexcept;
  /// Goes on where an end was that had been closed. Before anything else.
  void resume(std::uint64_t next) noexcept { window_ = SendWindow(next); }

  /// Messages that have left, or begun to.
  [[nodiscard]] std::uint64_t begun() const noexcept { return window_.next(); }
  [[nodiscard]] bool has_begun(std::uint64_t number) const noexcept { return number < window_.next(); }
  /// The number that the next send gets: those that wait go first.
  [[nodiscard]] std::uint64_t next_number() const noexcept { return window_.next() + waiting_count_; }
  /// The first that has not ended, if there is one.
  [[nodiscard]] std::optional<std::uint64_t> first_pending() const noexcept;
  [[nodiscard]] bool all_acknowledged() const noexcept { return window_.acknowledged() == window_.next(); }
  /// With the link, a device or the network, or awaiting an acknowledgement; oldest first.
  [[nodiscard]] Transfers& under_way() noexcept { return under_way_; }
  /// `sent`, `waiting` and `truncated`.
  void count_into(ChannelCounts& counts) const noexcept;

  // What becomes of them.
  void carried(Transfer& transfer) noexcept;
  /// The source lies in a pinned buffer, or could not be copied there.
  void staged(Transfer& transfer, Status status) noexcept;
  void note_truncated(std::uint64_t number) noexcept;
  /// The receive of a message failed, or there will be none.
  void on_not_taken(std::uint64_t number, Status why) noexcept;
  /// The other end has received a message, but not its bytes.
  void on_not_received(std::uint64_t number, Status status) noexcept;
  /// All messages before this number have landed.
  void on_acknowledged(std::uint64_t prefix) noexcept;
  /// Of a message that has a number, which the other end waits for: that is told.
  void fail(Transfer& transfer, Status status) noexcept;
  void withdraw(Transfer& transfer, Status why) noexcept;
  /// Those that the window holds back. Returns how many.
  std::size_t withdraw_waiting(Status why) noexcept;
  /// The source of a send that nobody observes is to be free soon.
  void let_go(Transfer& transfer) noexcept;

 private:
  /// What a post found out about its source.
  struct Source {
    ConstBuffer buffer;  ///< With a shape: of so many bytes as that.
    Path path = Path::automatic;
    AskedMemory memory;
    const Shape* shape = nullptr;
  };

  Status begin(Source what, Op& op) noexcept;
  bool send_at_once(ConstBuffer source) noexcept;
  void look_for_landing(ConstBuffer source) noexcept;
  [[nodiscard]] bool has_room(std::size_t bytes) noexcept { return waiting_.empty() && window_.has_room(bytes); }
  bool send_packed(const Source& source) noexcept;
  Status send(const Source& source, Op& op) noexcept;
  Status begin(Transfer& transfer) noexcept;
  Status leave(Transfer& transfer) noexcept;
  void start_waiting() noexcept;
  void stop_waiting(Transfer& transfer) noexcept;
  Status carry(Transfer& transfer, const Buffer& bytes) noexcept;
  void settle(Transfer& transfer, Status status) noexcept;
  void source_freed(Transfer& transfer) noexcept;
  void await_ack(Transfer& transfer) noexcept;
  bool stop(Transfer& transfer) noexcept;
  void end(Transfer& transfer, Status status) noexcept;
  void end_unsent(Transfer& transfer, Status status) noexcept;
  void count(Path path, std::uint64_t bytes) noexcept;
  void count_posted(int sign) noexcept;

  ChannelEndpoint& end_;
  Engine& engine_;
  SendWindow window_;
  Transfers waiting_;  ///< Sends that the window holds back, oldest first.
  std::uint64_t waiting_count_ = 0;
  Transfers under_way_;
  std::uint64_t sent_ = 0;
  std::uint64_t truncated_ = 0;
};

}  // namespace brant
