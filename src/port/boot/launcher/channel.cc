#include "port/boot/launcher/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace brant::port::launcher {

Status Channel::fail(Status status, std::string text) {
  error_ = std::move(text);
  // A frame that was half sent or half read cannot be taken back.
  if (status != Status::timed_out) broken_ = status;
  return status;
}

Status Channel::wait(short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{.fd = fd_, .events = events, .revents = 0};
    const int ready =
        ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max())));
    if (ready > 0) return Status::ok;
    if (ready < 0 && errno != EINTR)
      return fail(Status::io_error, fmt::format("waiting for `brant run`: {}", std::strerror(errno)));
    if (Clock::now() >= deadline) return fail(Status::timed_out, "no answer from `brant run` in time: is it stopped?");
  }
}

namespace {

/// The first byte carries the descriptors.
ssize_t send_piece(int fd, std::span<const std::byte> bytes, std::span<const int> files) noexcept {
  iovec piece{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kSpawnFiles * sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    message.msg_control = room.data();
    message.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(head), files.data(), files.size_bytes());
  }
  return ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

Status Channel::send(std::span<const std::byte> frame, Clock::time_point deadline, std::span<const int> files) {
  if (broken_ != Status::ok) return broken_;
  const std::size_t all = frame.size();
  while (!frame.empty()) {
    const ssize_t done = send_piece(fd_, frame, frame.size() == all ? files : std::span<const int>());
    if (done >= 0) {
      frame = frame.subspan(static_cast<std::size_t>(done));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      const Status status = wait(POLLOUT, deadline);
      if (status == Status::timed_out && frame.size() != all) broken_ = status;
      if (status != Status::ok) return status;
    } else if (errno != EINTR) {
      return fail(Status::peer_lost,
                  fmt::format("the launcher `brant run` is gone or closed the connection ({})", std::strerror(errno)));
    }
  }
  return Status::ok;
}

bool Channel::take_frame(Reply& reply, Status& status) {
  const std::span<const std::byte> rest = std::span<const std::byte>(in_).subspan(consumed_);
  if (rest.size() < kHeaderBytes) return false;
  Header header;
  const bool known = decode_header(rest, header) && header.type == Type::reply;
  if (known && rest.size() < kHeaderBytes + header.body_bytes) return false;
  if (known && decode(rest.subspan(kHeaderBytes, header.body_bytes), reply)) {
    consumed_ += kHeaderBytes + header.body_bytes;
    status = Status::ok;
  } else {
    status = fail(Status::peer_rejected, "the launcher sent something that is no answer of brant's bootstrap");
  }
  return true;
}

Status Channel::receive(Reply& reply, Clock::time_point deadline) {
  if (broken_ != Status::ok) return broken_;
  in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(std::exchange(consumed_, 0)));
  std::array<std::byte, 65536> piece;
  Status status = Status::ok;
  while (!take_frame(reply, status)) {
    const ssize_t got = ::recv(fd_, piece.data(), piece.size(), MSG_DONTWAIT);
    if (got > 0) {
      in_.insert(in_.end(), piece.begin(), piece.begin() + got);
    } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      status = wait(POLLIN, deadline);
      if (status != Status::ok) return status;
    } else if (got == 0 || errno != EINTR) {
      return fail(Status::peer_lost, "the launcher `brant run` is gone or closed the connection");
    }
  }
  return status;
}

}  // namespace brant::port::launcher
