#pragma once

#include <cstddef>
#include <string>

#include "base/unique_fd.h"

namespace brant::run {

/// Carries what is typed at a terminal to rank 0. The ranks are in process groups of their own, and the terminal lets
/// only the foreground group read it: that is `brant run`. (A file or pipe is handed to rank 0 as it is, without this.)
class InputForwarder {
 public:
  InputForwarder() noexcept = default;
  /// Throws StartError. `rank_end()` is to be given to rank 0 and then closed with close_rank_end().
  static InputForwarder open();

  [[nodiscard]] int rank_end() const noexcept { return read_end_.get(); }
  void close_rank_end() noexcept { read_end_.reset(); }

  /// Descriptors to poll now, -1 for none: one to read, one to write.
  [[nodiscard]] int source() const noexcept;
  [[nodiscard]] int target() const noexcept;
  void on_readable() noexcept;
  void on_writable() noexcept;
  /// After SIGCONT the terminal may be ours again.
  void resume() noexcept { paused_ = false; }

 private:
  UniqueFd read_end_;
  UniqueFd write_end_;
  std::string held_;
  bool paused_ = false;
  bool ended_ = true;
};

}  // namespace brant::run
