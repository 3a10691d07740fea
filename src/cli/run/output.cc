#include "cli/run/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace brant::run {
namespace {

constexpr std::size_t kQueueFull = std::size_t{1} << 20;
constexpr std::size_t kFilePiece = std::size_t{256} << 10;
constexpr int kDrainReads = 64;
constexpr std::string_view kWipe = "\r\x1b[K";

}  // namespace

OutputSink::OutputSink(int fd) noexcept : fd_(fd), piece_(PIPE_BUF) {
  struct stat info{};
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) piece_ = kFilePiece;
}

void OutputSink::append(std::string_view bytes) {
  if (broken_) return;
  if (std::exchange(drawn_, false)) queue_.append(kWipe);
  if (written_ > kQueueFull) {
    queue_.erase(0, written_);
    written_ = 0;
  }
  queue_.append(bytes);
}

void OutputSink::draw(std::string_view bytes) {
  if (broken_) return;
  queue_.append(bytes);
  drawn_ = true;
}

void OutputSink::on_writable() noexcept {
  const ssize_t done = ::write(fd_, queue_.data() + written_, std::min(piece_, queue_.size() - written_));
  if (done >= 0) {
    written_ += static_cast<std::size_t>(done);
  } else if (errno != EINTR && errno != EAGAIN) {
    broken_ = true;
    error_ = errno;
    written_ = queue_.size();
  }
  if (empty()) {
    queue_.clear();
    written_ = 0;
  }
}

bool OutputSink::full() const noexcept { return queue_.size() - written_ >= kQueueFull; }

void LineSplitter::feed(std::string_view bytes, OutputSink& sink) {
  while (!bytes.empty()) {
    const std::size_t room = kMaxLine - held_.size();
    const std::string_view window = bytes.substr(0, room);
    const std::size_t newline = window.find('\n');
    if (newline == std::string_view::npos && window.size() < room) {
      held_.append(window);
      if (draws_ && held_.find('\r') != std::string::npos) sink.draw(std::exchange(held_, {}));
      return;
    }
    const std::size_t length = newline == std::string_view::npos ? window.size() : newline;
    emit(window.substr(0, length), sink);
    bytes.remove_prefix(newline == std::string_view::npos ? length : length + 1);
  }
}

void LineSplitter::finish(OutputSink& sink) {
  if (!held_.empty()) emit({}, sink);
}

void LineSplitter::emit(std::string_view tail, OutputSink& sink) {
  line_.assign(prefix_).append(held_).append(tail).push_back('\n');
  sink.append(line_);
  held_.clear();
}

RankStream::RankStream(UniqueFd pipe, std::string prefix, OutputSink& sink, bool draws)
    : pipe_(std::move(pipe)), splitter_(std::move(prefix), draws), sink_(&sink) {}

bool RankStream::read_once() {
  std::array<char, 65536> piece;
  const ssize_t got = ::read(pipe_.get(), piece.data(), piece.size());
  if (got > 0) {
    splitter_.feed(std::string_view(piece.data(), static_cast<std::size_t>(got)), *sink_);
    // The rank should learn that nobody reads, as it would without us.
    if (sink_->broken()) close();
    return open();
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  close();
  return false;
}

void RankStream::on_readable() { read_once(); }

void RankStream::drain() {
  for (int turn = 0; turn < kDrainReads && open() && read_once(); ++turn) {
  }
}

void RankStream::close() {
  if (!open()) return;
  splitter_.finish(*sink_);
  pipe_.reset();
}

}  // namespace brant::run
