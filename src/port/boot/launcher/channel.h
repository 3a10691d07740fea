#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "port/boot/launcher/frame.h"

namespace brant::port::launcher {

/// The process's side of the socket: one question, one answer, each with a deadline. Does not own the descriptor. After
/// a failure other than timed_out the stream is out of step and every later call fails. One thread.
class Channel {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Channel(int fd) noexcept : fd_(fd) {}

  /// Sends a whole frame, and copies of descriptors with it. peer_lost if the launcher is gone, timed_out if it does
  /// not read.
  Status send(std::span<const std::byte> frame, Clock::time_point deadline, std::span<const int> files = {});
  /// Waits for the next reply. It stays valid until the next call.
  Status receive(Reply& reply, Clock::time_point deadline);

  /// An answer is outstanding that nobody waits for any more; it must not be taken for the answer to a later question.
  void give_up() noexcept { broken_ = Status::timed_out; }

  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  Status wait(short events, Clock::time_point deadline);
  Status fail(Status status, std::string text);
  bool take_frame(Reply& reply, Status& status);

  int fd_;
  std::vector<std::byte> in_;
  std::size_t consumed_ = 0;
  std::string error_;
  Status broken_ = Status::ok;
};

}  // namespace brant::port::launcher
