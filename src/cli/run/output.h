#pragma once

#include <poll.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace brant::run {

/// Where lines of all ranks go: a descriptor that is never made non-blocking (others share it) and never blocks us.
/// Bytes wait in a queue; once it is full() the ranks' pipes are left alone until the reader has caught up. Does not
/// own the descriptor.
class OutputSink {
 public:
  explicit OutputSink(int fd) noexcept;

  void append(std::string_view bytes);
  /// Part of a line that is drawn over and over on a terminal; what is appended next wipes it.
  void draw(std::string_view bytes);
  /// Write this much when poll said that the descriptor takes bytes (or has an error).
  void on_writable() noexcept;

  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] bool empty() const noexcept { return queue_.size() == written_; }
  [[nodiscard]] bool full() const noexcept;
  /// Nobody reads any more; what is appended is dropped.
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  /// Why it is broken, as errno: EPIPE where a reader left, others where what was printed is lost. 0: it is not.
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  int fd_;
  std::size_t piece_;  // the largest write that cannot block after poll said yes
  std::string queue_;
  std::size_t written_ = 0;
  bool broken_ = false;
  int error_ = 0;
  bool drawn_ = false;
};

/// Cuts one stream of one rank into lines and hands them on whole. Any bytes are fine. A line longer than kMaxLine goes
/// on in pieces, each a line of its own, because it would otherwise hold back memory without bound. Of a stream that
/// `draws`, unfinished lines with a carriage return, which are drawn over and over, go on as they come.
class LineSplitter {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{64} << 10;

  explicit LineSplitter(std::string prefix, bool draws = false) : prefix_(std::move(prefix)), draws_(draws) {}

  void feed(std::string_view bytes, OutputSink& sink);
  /// The stream ended: an unfinished line is finished.
  void finish(OutputSink& sink);

 private:
  void emit(std::string_view tail, OutputSink& sink);

  std::string prefix_;
  std::string held_;  // the beginning of an unfinished line
  std::string line_;
  bool draws_ = false;
};

/// One stream of one rank: the read end of its pipe or terminal, and what happens to what comes out of it.
class RankStream {
 public:
  RankStream() noexcept = default;
  RankStream(UniqueFd pipe, std::string prefix, OutputSink& sink, bool draws = false);

  [[nodiscard]] bool open() const noexcept { return static_cast<bool>(pipe_); }
  [[nodiscard]] int fd() const noexcept { return pipe_.get(); }
  /// Leaves bytes in the pipe as long as the sink is full.
  [[nodiscard]] bool wants_input() const noexcept { return open() && !sink_->full(); }
  /// Reads once; closes at the end of the stream.
  void on_readable();
  /// Reads what a rank that has ended left in the pipe, which is little: the pipe's capacity.
  void drain();
  void close();

 private:
  bool read_once();

  UniqueFd pipe_;
  LineSplitter splitter_{{}};
  OutputSink* sink_ = nullptr;
};

}  // namespace brant::run
