#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "brant/base/status.h"

namespace brant::port::pmi {

/// What a line says: "cmd=put_result rc=0 msg=success".
using Words = std::map<std::string, std::string, std::less<>>;
[[nodiscard]] Words words_of(std::string_view line);

/// The socket to the launcher's process on this host, which speaks PMI-1: lines of words, one answer to each command.
/// Calls end at their deadline. After a failure every later call fails. One thread.
class Wire {
 public:
  using Clock = std::chrono::steady_clock;

  /// The socket stays the launcher's: it is never closed here.
  explicit Wire(int fd) noexcept : fd_(fd) {}

  /// Without the end of the line.
  Status send(std::string_view command, Clock::time_point deadline);
  /// The next answer, which must be of this kind. After timed_out it may be waited for again.
  Status receive(std::string_view kind, Words& words, Clock::time_point deadline);
  /// Both, where the answer comes at once. io_error if the launcher refuses.
  Status ask(std::string_view command, std::string_view kind, Words& words, Clock::time_point deadline);

  /// Why the last call failed.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  Status wait(short events, Clock::time_point deadline);
  Status fail(Status status, std::string text);

  const int fd_;
  std::string come_;  ///< What has come and is not read.
  Status broken_ = Status::ok;
  std::string error_;
};

}  // namespace brant::port::pmi
