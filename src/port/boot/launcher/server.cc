#include "port/boot/launcher/server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace brant::port::launcher {
namespace {

/// A dying process closes its socket a little before the kernel reports its end, and the report says more.
constexpr std::chrono::milliseconds kClosedGrace{200};
/// Replies a process has not read. It asks one question at a time, so more than two are never outstanding.
constexpr std::size_t kMaxUnread = 4 * (kMaxBodyBytes + kHeaderBytes);

/// As recv; descriptors that came are added to `files`. More than a frame may have are closed.
ssize_t receive_piece(int fd, std::span<std::byte> bytes, std::vector<UniqueFd>& files) {
  iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kSpawnFiles * sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  const ssize_t got = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  for (cmsghdr* head = got >= 0 ? CMSG_FIRSTHDR(&message) : nullptr; head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= head->cmsg_len; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(head) + at, sizeof number);
      UniqueFd file(number);
      if (files.size() < kSpawnFiles) files.push_back(std::move(file));
    }
  }
  return got;
}

}  // namespace

Server::Server(int size, std::string job_id)
    : job_id_(std::move(job_id)), store_(size), connections_(static_cast<std::size_t>(size)) {}

std::pair<UniqueFd, UniqueFd> Server::make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(Status::io_error, fmt::format("no socket pair for a process of the job: {}", std::strerror(errno)));
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void Server::add(int rank, UniqueFd ours) { at(rank).socket = std::move(ours); }

int Server::fd(int rank) const noexcept { return connections_[static_cast<std::size_t>(rank)].socket.get(); }

short Server::events(int rank) const noexcept {
  const Connection& connection = connections_[static_cast<std::size_t>(rank)];
  return static_cast<short>(connection.out.empty() ? POLLIN : POLLIN | POLLOUT);
}

void Server::on_ready(int rank, short revents, Clock::time_point now) {
  if ((revents & POLLOUT) != 0) flush(rank);
  if ((revents & (POLLIN | POLLHUP | POLLERR)) != 0) receive(rank, now);
  send_fence_answers();
}

void Server::receive(int rank, Clock::time_point now) {
  std::array<std::byte, 65536> piece;
  // Bounded, so that one chatty process cannot keep the others waiting.
  for (int turn = 0; turn < 32 && at(rank).socket; ++turn) {
    const ssize_t got = receive_piece(at(rank).socket.get(), piece, at(rank).files);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) return close(rank, now);
    at(rank).in.insert(at(rank).in.end(), piece.begin(), piece.begin() + got);
    if (!handle_frames(rank)) return;
  }
}

bool Server::handle_frames(int rank) {
  Connection& connection = at(rank);
  std::span<const std::byte> rest(connection.in);
  while (rest.size() >= kHeaderBytes) {
    Header header;
    if (!decode_header(rest, header)) {
      refuse(rank, "sent something that is no message of brant's bootstrap");
      return false;
    }
    if (rest.size() < kHeaderBytes + header.body_bytes) break;
    if (!handle(rank, header.type, rest.subspan(kHeaderBytes, header.body_bytes))) return false;
    rest = rest.subspan(kHeaderBytes + header.body_bytes);
  }
  connection.in.erase(connection.in.begin(), connection.in.end() - static_cast<std::ptrdiff_t>(rest.size()));
  return true;
}

bool Server::handle(int rank, Type type, std::span<const std::byte> body) {
  const auto malformed = [&] {
    refuse(rank,
           fmt::format("sent a malformed bootstrap message (type {}, {} bytes)", static_cast<int>(type), body.size()));
    return false;
  };
  if (type == Type::hello) return handle_hello(rank, body);
  if (!at(rank).greeted) return malformed();
  switch (type) {
    case Type::put: {
      Put put;
      if (!decode(body, put)) return malformed();
      const Store::Answer answer = store_.put(rank, put);
      reply(rank, {.to = type, .status = answer.status, .text = answer.text, .payload = {}});
      return true;
    }
    case Type::get: {
      Get get;
      if (!decode(body, get)) return malformed();
      std::vector<std::byte> payload;
      const Store::Answer answer = store_.get(get, payload);
      reply(rank, {.to = type, .status = answer.status, .text = answer.text, .payload = payload});
      return true;
    }
    case Type::fence:
    case Type::cancel_fence: {
      Fence fence;
      if (!decode(body, fence)) return malformed();
      type == Type::fence ? store_.enter_fence(rank, fence.id) : store_.cancel_fence(rank, fence.id);
      return true;
    }
    case Type::finalize:
      at(rank).greeted = false;  // until it says hello again
      return body.empty() || malformed();
    case Type::spawn: return body.empty() ? handle_spawn(rank) : malformed();
    case Type::abort: {
      Abort abort;
      if (!decode(body, abort)) return malformed();
      aborts_.push_back({rank, abort_exit_code(abort.exit_code), abort.text});
      return true;
    }
    default: return malformed();
  }
}

bool Server::handle_spawn(int rank) {
  std::vector<UniqueFd> files = std::exchange(at(rank).files, {});
  if (files.size() != kSpawnFiles) {
    reply(rank, {.to = Type::spawn,
                 .status = Status::limit_reached,
                 .text = "`brant run` has no descriptors left for what is to be spawned (ulimit -n)",
                 .payload = {}});
    return true;
  }
  spawns_.push_back({rank, std::move(files[0]), std::move(files[1])});
  reply(rank, {.to = Type::spawn, .text = {}, .payload = {}});
  return true;
}

bool Server::handle_hello(int rank, std::span<const std::byte> body) {
  Hello hello;
  if (!decode(body, hello)) {
    refuse(rank, "sent a malformed bootstrap greeting");
    return false;
  }
  Reply answer{.to = Type::hello, .text = {}, .payload = {}};
  if (hello.version != kProtocolVersion) {
    answer.status = Status::version_mismatch;
    answer.text = fmt::format(
        "the launcher speaks bootstrap version {}, the program version {}: use the `brant` of the "
        "same release as the program",
        kProtocolVersion, hello.version);
  } else if (hello.rank != rank || hello.size != static_cast<int>(connections_.size()) || hello.job_id != job_id_) {
    answer.status = Status::peer_rejected;
    answer.text = fmt::format(
        "the socket belongs to rank {} of {} in job {}, but BRANT_RANK, BRANT_SIZE and BRANT_JOB_ID "
        "say rank {} of {} in job {}",
        rank, connections_.size(), job_id_, hello.rank, hello.size, hello.job_id);
  } else {
    at(rank).greeted = true;
    store_.open(rank);
  }
  reply(rank, answer);
  return true;
}

void Server::reply(int rank, const Reply& reply) {
  Connection& connection = at(rank);
  if (!connection.socket) return;
  if (connection.out.size() - connection.sent > kMaxUnread)
    return refuse(rank, "does not read the replies to what it asks");
  const std::vector<std::byte> frame = encode(reply);
  connection.out.insert(connection.out.end(), frame.begin(), frame.end());
  flush(rank);
}

void Server::flush(int rank) {
  Connection& connection = at(rank);
  while (connection.socket && connection.sent < connection.out.size()) {
    const ssize_t done = ::send(connection.socket.get(), connection.out.data() + connection.sent,
                                connection.out.size() - connection.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    // A broken socket is noticed by the next receive, which also knows what to do about it.
    if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (done < 0) break;
    connection.sent += static_cast<std::size_t>(done);
  }
  connection.out.clear();
  connection.sent = 0;
}

void Server::refuse(int rank, const std::string& why) {
  complaints_.push_back(fmt::format("rank {} {}; its bootstrap connection is closed", rank, why));
  at(rank).socket.reset();
  at(rank).out.clear();
  store_.leave(rank, fmt::format("rank {} {}", rank, why));
}

void Server::close(int rank, Clock::time_point now) {
  at(rank).socket.reset();
  at(rank).out.clear();
  at(rank).give_up_at = now + kClosedGrace;
}

void Server::rank_ended(int rank, const std::string& how) {
  at(rank).socket.reset();
  at(rank).give_up_at.reset();
  store_.leave(rank, how);
  send_fence_answers();
}

void Server::tick(Clock::time_point now) {
  for (std::size_t rank = 0; rank < connections_.size(); ++rank) {
    std::optional<Clock::time_point>& give_up_at = connections_[rank].give_up_at;
    if (!give_up_at || *give_up_at > now) continue;
    give_up_at.reset();
    store_.leave(static_cast<int>(rank), fmt::format("rank {} closed its bootstrap connection", rank));
  }
  send_fence_answers();
}

std::optional<Server::Clock::time_point> Server::deadline() const noexcept {
  std::optional<Clock::time_point> first;
  for (const Connection& connection : connections_) {
    if (connection.give_up_at && (!first || *connection.give_up_at < *first)) first = connection.give_up_at;
  }
  return first;
}

void Server::send_fence_answers() {
  for (const Store::FenceAnswer& each : store_.take_answers()) {
    reply(each.rank,
          {.to = Type::fence, .id = each.id, .status = each.answer.status, .text = each.answer.text, .payload = {}});
  }
}

}  // namespace brant::port::launcher
