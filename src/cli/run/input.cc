#include "cli/run/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "cli/run/program.h"

namespace brant::run {

InputForwarder InputForwarder::open() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw StartError(1, fmt::format("no pipe: {}", std::strerror(errno)));
  InputForwarder forwarder;
  forwarder.read_end_.reset(ends[0]);
  forwarder.write_end_.reset(ends[1]);
  // Only our end: the two ends of a pipe have flags of their own.
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  forwarder.ended_ = false;
  return forwarder;
}

int InputForwarder::source() const noexcept {
  return write_end_ && !ended_ && !paused_ && held_.empty() ? STDIN_FILENO : -1;
}

int InputForwarder::target() const noexcept { return held_.empty() ? -1 : write_end_.get(); }

void InputForwarder::on_readable() noexcept {
  std::array<char, 4096> piece;
  const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
  if (got > 0) {
    held_.assign(piece.data(), static_cast<std::size_t>(got));
  } else if (got < 0 && errno == EIO) {
    paused_ = true;  // in the background
  } else if (got == 0 || errno != EINTR) {
    ended_ = true;
    write_end_.reset();
  }
}

void InputForwarder::on_writable() noexcept {
  const ssize_t done = ::write(write_end_.get(), held_.data(), held_.size());
  if (done >= 0) {
    held_.erase(0, static_cast<std::size_t>(done));
  } else if (errno != EINTR && errno != EAGAIN) {
    held_.clear();
    write_end_.reset();  // rank 0 reads no more
  }
}

}  // namespace brant::run
