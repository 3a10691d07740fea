#pragma once

#include <cstdint>

#include "core/engine.h"

namespace brant {

class ChannelEndpoint;
struct Transfer;

/// What is left of an end that was closed and has nothing under way: its numbers go on when it is opened again.
struct ClosedEnd {
  std::uint64_t next_send = 0;
  std::uint64_t next_receive = 0;
  std::uint32_t opened = 0;  ///< How often.
};

/// Whether one end is open, and the other one. Closes it, and finds out when nothing but its numbers is left of it.
class ChannelClosing final : private PeerOp {
 public:
  explicit ChannelClosing(ChannelEndpoint& end) noexcept;
  ~ChannelClosing();
  ChannelClosing(const ChannelClosing&) = delete;
  ChannelClosing& operator=(const ChannelClosing&) = delete;

  [[nodiscard]] bool closed() const noexcept { return closed_; }
  void close() noexcept;
  /// Not open: it keeps what comes for it.
  void await_open() noexcept;
  /// Goes on where an end was that had been closed. Before anything else.
  void resume(const ClosedEnd& before) noexcept;
  void reopen() noexcept;

  void on_opened() noexcept {
    opened_there_ = true;
    other_closed_ = 0;
  }
  /// The other end was closed for the `opened`th time, after `sent` messages.
  void on_closed(std::uint32_t opened, std::uint64_t sent) noexcept;
  /// Ends what waits in vain, if the program of the other end has ended and has said how much it sent.
  void end_if_known() noexcept;
  [[nodiscard]] bool is_closed_there() const noexcept { return other_closed_ != 0; }
  /// Nor has anybody begun to: the program over there has ended, and never opened its end.
  [[nodiscard]] bool nobody_receives() const noexcept;

  /// Something has ended or come. Of an end that is closed it may have been the last.
  void look() noexcept {
    if (closed_) [[unlikely]]
      settle();
  }
  /// The same, of a send or receive.
  void on_ended(bool was_send) noexcept;
  /// Its owner forgets a send after the channel was closed.
  void give_up_late(Transfer& transfer) noexcept;
  /// Closed, and nothing is under way or kept for it: `rest` is all there is to know.
  [[nodiscard]] bool settled() const noexcept;
  [[nodiscard]] ClosedEnd rest() const noexcept;

 private:
  void settle() noexcept;
  void drop_unread() noexcept;

  ChannelEndpoint& end_;
  bool closed_ = false;
  bool in_use_ = false;             ///< A call that moves the engine stands in this end.
  bool opened_there_ = false;       ///< The other end, at some time.
  std::uint32_t opened_ = 0;        ///< How often.
  std::uint32_t other_closed_ = 0;  ///< Unless 0 the other end is closed, and was opened so often.
  std::uint64_t other_sent_ = 0;    ///< So many messages, until it was closed.
};

/// What a closing end does about sources that nobody observes any more: it lets go of them, and waits until they are
/// free, or says which may still be read (source_release.cc).
void release_sources(ChannelEndpoint& end) noexcept;

}  // namespace brant
