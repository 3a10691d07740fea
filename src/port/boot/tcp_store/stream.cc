#include "port/boot/tcp_store/stream.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace brant::port::tcp_store {
namespace {

using namespace std::chrono_literals;

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses look_up(const std::string& host, int port, int& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {error == 0 ? found : nullptr, &::freeaddrinfo};
}

void send_at_once(int fd) noexcept {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int error_of(int fd) noexcept {
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

}  // namespace

Status Stream::fail(Status status, std::string text) {
  error_ = std::move(text);
  broken_ = status;
  return status;
}

Status Stream::reject(std::string why) { return fail(Status::peer_rejected, std::move(why)); }

Status Stream::wait(int fd, short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    const int ready =
        ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max())));
    if (ready > 0) return Status::ok;
    if (ready < 0 && errno != EINTR) return fail(Status::io_error, fmt::format("poll: {}", std::strerror(errno)));
    if (Clock::now() >= deadline) {
      error_ = "no answer in time";
      return Status::timed_out;
    }
  }
}

Status Stream::connect_once(const std::string& host, int port, Clock::time_point deadline) {
  int unknown = 0;
  const Addresses addresses = look_up(host, port, unknown);
  error_ = fmt::format("the name cannot be looked up: {}", ::gai_strerror(unknown));
  if (unknown != 0) return unknown == EAI_AGAIN ? Status::peer_rejected : Status::invalid_argument;
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    UniqueFd fd(::socket(one->ai_family, one->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, one->ai_protocol));
    if (!fd) continue;
    int error = ::connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) error = wait(fd.get(), POLLOUT, deadline) == Status::ok ? error_of(fd.get()) : ETIMEDOUT;
    if (error == 0) {
      send_at_once(fd.get());
      fd_ = std::move(fd);
      return Status::ok;
    }
    error_ = std::strerror(error);
  }
  return Status::peer_rejected;
}

Status Stream::connect(const std::string& host, int port, Clock::time_point deadline) {
  std::chrono::milliseconds pause = 20ms;
  while (true) {
    const Status status = connect_once(host, port, deadline);
    if (status != Status::peer_rejected || Clock::now() + pause >= deadline) {
      if (status != Status::ok) broken_ = status;
      return status;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::milliseconds>(pause * 2, 500ms);
  }
}

Status Stream::send(std::span<const std::byte> bytes, Clock::time_point deadline) {
  if (broken_ != Status::ok) return broken_;
  while (!bytes.empty()) {
    const ssize_t done = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      const Status status = wait(fd_.get(), POLLOUT, deadline);
      if (status == Status::timed_out) return fail(status, "it does not read what it is sent");
      if (status != Status::ok) return status;
    } else if (errno != EINTR) {
      return fail(Status::peer_lost, fmt::format("the connection broke: {}", std::strerror(errno)));
    }
  }
  return Status::ok;
}

Status Stream::receive(std::span<std::byte> bytes, Clock::time_point deadline) {
  if (broken_ != Status::ok) return broken_;
  const std::size_t all = bytes.size();
  while (!bytes.empty()) {
    const ssize_t got = ::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      const Status status = wait(fd_.get(), POLLIN, deadline);
      if (status == Status::timed_out && bytes.size() != all) broken_ = status;
      if (status != Status::ok) return status;
    } else if (got == 0) {
      return fail(Status::peer_lost, "it closed the connection");
    } else if (errno != EINTR) {
      return fail(Status::peer_lost, fmt::format("the connection broke: {}", std::strerror(errno)));
    }
  }
  return Status::ok;
}

}  // namespace brant::port::tcp_store
