#include "core/lease_thread.h"

#include <linux/errqueue.h>
#include <netinet/ip.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/seconds.h"
#include "brant/base/status.h"
#include "core/own_address.h"

namespace brant {
namespace {

/// Datagrams heard between two looks at the clock: a flood of foreign ones must not keep pings from being sent.
constexpr int kHeardAtOnce = 256;
/// Pings sent between two looks at what has come: many answers at once would not fit into the socket.
constexpr std::size_t kSentAtOnce = 64;

[[noreturn]] void refuse(const char* call) {
  throw Error(Status::io_error, fmt::format("{} for the leases between hosts: {}. Cure: raise the limit of open files, "
                                            "or set BRANT_LEASE=0 to do without",
                                            call, std::strerror(errno)));
}

UniqueFd make_alarm() {
  UniqueFd alarm(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!alarm) refuse("eventfd");
  return alarm;
}

void ring(const UniqueFd& alarm) noexcept {
  const std::uint64_t one = 1;
  if (::write(alarm.get(), &one, sizeof one) < 0) return;  // full: it rings already
}

void silence(const UniqueFd& alarm) noexcept {
  std::uint64_t rings = 0;
  if (::read(alarm.get(), &rings, sizeof rings) < 0) return;  // it did not ring
}

UniqueFd make_socket(const SocketAddress& own) {
  UniqueFd socket(::socket(own.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) refuse("socket");
  const int on = 1;
  const bool v4 = own.family() == AF_INET;
  // Refusals are hints: without them a lost process is only noticed later.
  static_cast<void>(
      ::setsockopt(socket.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_RECVERR : IPV6_RECVERR, &on, sizeof on));
  if (::bind(socket.get(), own.get(), own.length()) != 0) refuse(fmt::format("bind to {}", own.text()).c_str());
  return socket;
}

SocketAddress bound_address(const UniqueFd& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* any = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(socket.get(), any, &length) != 0) refuse("getsockname");
  const auto address = SocketAddress::from(any);
  if (!address) refuse("getsockname");
  return *address;
}

}  // namespace

std::unique_ptr<LeaseThread> LeaseThread::open(std::chrono::nanoseconds patience) {
  const auto own = own_address();
  if (!own) {
    log::warn(
        "no network interface has an IP address: processes of other hosts that stop or are cut off are noticed only "
        "when the network fails towards them. BRANT_LEASE=0 says that this is meant");
    return nullptr;
  }
  return std::make_unique<LeaseThread>(patience, *own);
}

LeaseThread::LeaseThread(std::chrono::nanoseconds patience, const SocketAddress& own)
    : patience_(patience),
      socket_(make_socket(own)),
      order_alarm_(make_alarm()),
      verdict_alarm_(make_alarm()),
      address_(bound_address(socket_)) {}

LeaseThread::~LeaseThread() {
  ending_.store(true);
  ring(order_alarm_);
  if (thread_.joinable()) thread_.join();
  if (dropped() != 0) log::info("leases: {} datagrams were not of this job, or came twice: dropped", dropped());
}

void LeaseThread::start(int self, const Lease::Key& key, std::vector<std::optional<SocketAddress>> addresses,
                        std::optional<int> probed) {
  peers_ = std::move(addresses);
  lease_.emplace(self, static_cast<int>(peers_.size()), patience_, key);
  if (probed) lease_->probe(*probed);
  orders_.reserve(2 * peers_.size());  // the worker gives up where it may not throw
  // Signals are the program's: none shall be handled here.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw Error(Status::io_error,
                fmt::format("a thread for the leases between hosts: {}. BRANT_LEASE=0 does without", error.what()));
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_setname_np(thread_.native_handle(), "brant-lease");
}

void LeaseThread::order(Order order) {
  const auto rank = static_cast<std::size_t>(order.rank);
  if (rank >= peers_.size() || !peers_[rank]) return;
  {
    const std::scoped_lock lock(mutex_);
    orders_.push_back(order);
  }
  ring(order_alarm_);
}

void LeaseThread::watch(int rank) { order({rank, true}); }
void LeaseThread::give_up(int rank) { order({rank, false}); }

std::vector<Lease::Verdict> LeaseThread::poll() {
  if (!verdicts_wait_.load(std::memory_order_acquire)) return {};
  const std::scoped_lock lock(mutex_);
  silence(verdict_alarm_);
  verdicts_wait_.store(false, std::memory_order_relaxed);
  return std::exchange(verdicts_, {});
}

/// Everything that has come is heard before anything is judged: after a pause of this process the answers lie there.
void LeaseThread::run() noexcept {
  Lease& lease = *lease_;
  for (;;) {
    hear_all(lease);
    take_orders(lease);
    if (ending_.load()) return;  // behind the alarm, which rings for that as well
    if (Clock::now() >= lease.next()) {
      const auto pings = lease.tick(Clock::now());
      for (std::size_t i = 0; i < pings.size(); ++i) {
        send(pings[i]);
        if (i % kSentAtOnce == kSentAtOnce - 1) hear_all(lease);
      }
      complain_once(lease);
    }
    publish(lease);
    rest_until(lease.next());
  }
}

void LeaseThread::rest_until(TimePoint when) noexcept {
  std::array<pollfd, 2> watched = {pollfd{socket_.get(), POLLIN, 0}, pollfd{order_alarm_.get(), POLLIN, 0}};
  timespec left{};
  const auto rest = std::max(std::chrono::nanoseconds{0}, std::chrono::nanoseconds(when - Clock::now()));
  left.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(rest).count();
  left.tv_nsec = (rest % std::chrono::seconds(1)).count();
  static_cast<void>(::ppoll(watched.data(), watched.size(), when == kNever ? nullptr : &left, nullptr));
}

void LeaseThread::take_orders(Lease& lease) {
  silence(order_alarm_);
  std::vector<Order> orders;
  {
    const std::scoped_lock lock(mutex_);
    orders = orders_;
    orders_.clear();
  }
  for (const Order& order : orders) order.watch ? lease.watch(order.rank) : lease.give_up(order.rank);
}

void LeaseThread::hear_all(Lease& lease) noexcept {
  std::array<std::byte, Lease::kDatagramBytes + 1> bytes;  // one more shows which are too long
  for (int i = 0; i < kHeardAtOnce; ++i) {
    const ssize_t length = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (length < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      continue;  // what the network says of an earlier ping: it lies in the queue of errors
    }
    if (const auto reply = lease.hear(std::span(bytes).first(static_cast<std::size_t>(length)))) send(*reply);
  }
  take_refusals(lease);
  dropped_.store(lease.dropped(), std::memory_order_relaxed);
}

void LeaseThread::take_refusals(Lease& lease) noexcept {
  for (int i = 0; i < kHeardAtOnce; ++i) {
    sockaddr_storage to{};
    std::array<std::byte, Lease::kDatagramBytes> sent;
    alignas(cmsghdr) std::array<char, 512> notes;
    iovec content{sent.data(), sent.size()};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = notes.data();
    message.msg_controllen = notes.size();
    if (::recvmsg(socket_.get(), &message, MSG_ERRQUEUE) < 0) return;
    for (cmsghdr* note = CMSG_FIRSTHDR(&message); note != nullptr; note = CMSG_NXTHDR(&message, note)) {
      const bool of_v4 = note->cmsg_level == IPPROTO_IP && note->cmsg_type == IP_RECVERR;
      const bool of_v6 = note->cmsg_level == IPPROTO_IPV6 && note->cmsg_type == IPV6_RECVERR;
      if (!of_v4 && !of_v6) continue;
      sock_extended_err error{};
      std::memcpy(&error, CMSG_DATA(note), sizeof error);
      const auto address = SocketAddress::from(reinterpret_cast<const sockaddr*>(&to));
      const auto peer = address ? std::find(peers_.begin(), peers_.end(), address) : peers_.end();
      if (error.ee_errno == ECONNREFUSED && peer != peers_.end())
        lease.refused(static_cast<int>(peer - peers_.begin()));
    }
  }
}

/// What is not sent counts as lost on the way. The first failure may be what the network says of an earlier datagram.
void LeaseThread::send(const Lease::Outgoing& outgoing) noexcept {
  const auto& peer = peers_[static_cast<std::size_t>(outgoing.rank)];
  if (!peer) return;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const ssize_t sent = ::sendto(socket_.get(), outgoing.datagram.data(), outgoing.datagram.size(), MSG_NOSIGNAL,
                                  peer->get(), peer->length());
    if (sent >= 0) return;
  }
}

void LeaseThread::publish(Lease& lease) {
  const std::vector<Lease::Verdict> news = lease.take_verdicts();
  if (news.empty()) return;
  // All in one: `poll` takes the verdicts and silences the alarm, and what rang after that would ring for ever. Whom
  // the alarm wakes finds the word set.
  const std::scoped_lock lock(mutex_);
  verdicts_.insert(verdicts_.end(), news.begin(), news.end());
  verdicts_wait_.store(true, std::memory_order_release);
  ring(verdict_alarm_);
}

void LeaseThread::complain_once(const Lease& lease) noexcept {
  if (!lease.deaf() || std::exchange(complained_, true)) return;
  log::warn(
      "no process of another host has answered a datagram for {} s, from the start on: UDP to and from {} seems to be "
      "filtered. A process that stops or is cut off is noticed only when the network fails towards it. Cure: let UDP "
      "through between the hosts of the job, name another interface by UCX_NET_DEVICES, or set BRANT_LEASE=0",
      in_seconds(patience_), address_.text());
}

}  // namespace brant
