#include "port/boot/pmi/wire.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace brant::port::pmi {

namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

}  // namespace

Words words_of(std::string_view line) {
  Words words;
  std::string* last = nullptr;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos) {
      last = &words[std::string(word.substr(0, equals))];
      *last = word.substr(equals + 1);
    } else if (last != nullptr && !word.empty()) {  // a value with blanks: a message
      *last += ' ';
      *last += word;
    }
  }
  return words;
}

Status Wire::fail(Status status, std::string text) {
  broken_ = status;
  error_ = std::move(text);
  return status;
}

Status Wire::wait(short events, Clock::time_point deadline) {
  while (true) {
    pollfd entry{.fd = fd_, .events = events, .revents = 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int ready =
        ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max())));
    if (ready > 0) return Status::ok;
    if (ready < 0 && errno != EINTR) return fail(Status::io_error, fmt::format("poll: {}", std::strerror(errno)));
    if (Clock::now() >= deadline) {
      error_ = "the launcher gave no answer in time";
      return Status::timed_out;
    }
  }
}

Status Wire::send(std::string_view command, Clock::time_point deadline) {
  if (broken_ != Status::ok) return broken_;
  const std::string line = std::string(command) + '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t done = ::send(fd_, rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(done));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      const Status status = wait(POLLOUT, deadline);
      if (status == Status::timed_out) return fail(status, "the launcher does not read what it is sent");
      if (status != Status::ok) return status;
    } else if (errno != EINTR) {
      return fail(Status::peer_lost, fmt::format("the launcher is gone: {}", std::strerror(errno)));
    }
  }
  return Status::ok;
}

Status Wire::receive(std::string_view kind, Words& words, Clock::time_point deadline) {
  if (broken_ != Status::ok) return broken_;
  std::size_t end = come_.find('\n');
  while (end == std::string::npos) {
    std::array<char, 4096> piece{};
    const ssize_t got = ::recv(fd_, piece.data(), piece.size(), MSG_DONTWAIT);
    if (got > 0) {
      come_.append(piece.data(), static_cast<std::size_t>(got));
      end = come_.find('\n');
      if (end == std::string::npos && come_.size() > kMaxLineBytes)
        return fail(Status::io_error, "the launcher sends no end of a line");
    } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (const Status status = wait(POLLIN, deadline); status != Status::ok) return status;
    } else if (got == 0) {
      return fail(Status::peer_lost, "the launcher closed its connection");
    } else if (errno != EINTR) {
      return fail(Status::peer_lost, fmt::format("the launcher is gone: {}", std::strerror(errno)));
    }
  }
  const std::string line = come_.substr(0, end);
  come_.erase(0, end + 1);
  words = words_of(line);
  if (words["cmd"] != kind) return fail(Status::io_error, fmt::format("the launcher said '{}' for {}", line, kind));
  return Status::ok;
}

Status Wire::ask(std::string_view command, std::string_view kind, Words& words, Clock::time_point deadline) {
  Status status = send(command, deadline);
  if (status == Status::ok) status = receive(kind, words, deadline);
  // An answer that comes after all would be taken for that to the next command.
  if (status == Status::timed_out) return fail(status, error_);
  if (status != Status::ok) return status;
  const auto refused = words.find("rc");
  if (refused == words.end() || refused->second == "0") return Status::ok;
  error_ = fmt::format("the launcher refused '{}': {}", command.substr(0, 100), words["msg"]);
  return Status::io_error;
}

}  // namespace brant::port::pmi
