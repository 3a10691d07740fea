#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "brant/base/status.h"

namespace brant::port::tcp_store {

/// A connection whose calls all end at a deadline. After a failure every later call fails, as what was half sent or
/// half read cannot be taken back; only a receive that has read nothing yet may time out and be tried again. One
/// thread.
class Stream {
 public:
  using Clock = std::chrono::steady_clock;

  /// Tries again while nobody listens, until the deadline. peer_rejected if nobody does, invalid_argument if there is
  /// no host of that name. The time that the system takes to look up the name is not bounded here.
  Status connect(const std::string& host, int port, Clock::time_point deadline);

  Status send(std::span<const std::byte> bytes, Clock::time_point deadline);
  /// All of them.
  Status receive(std::span<std::byte> bytes, Clock::time_point deadline);

  /// What came makes no sense: nothing that comes after it will.
  Status reject(std::string why);

  /// Why the last call failed.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  Status connect_once(const std::string& host, int port, Clock::time_point deadline);
  Status wait(int fd, short events, Clock::time_point deadline);
  Status fail(Status status, std::string text);

  UniqueFd fd_;
  Status broken_ = Status::ok;
  std::string error_;
};

}  // namespace brant::port::tcp_store
