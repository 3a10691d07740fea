#include "core/lease_thread.h"

#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace brant {
namespace {

using namespace std::chrono_literals;

constexpr Lease::Key kKey{std::byte{42}};
constexpr std::chrono::nanoseconds kPatience = 400ms;
constexpr auto kLimit = 20s;  // of waits: the machine may be busy

SocketAddress loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return *SocketAddress::from(reinterpret_cast<sockaddr*>(&address));
}

bool readable(int fd, std::chrono::milliseconds limit) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, static_cast<int>(limit.count())) == 1 && (one.revents & POLLIN) != 0;
}

/// Rank 1, whose every datagram is the test's own choice.
class Puppet {
 public:
  explicit Puppet(const LeaseThread& other, const Lease::Key& key = kKey)
      : other_(other.address()), lease(1, 2, kPatience, key) {
    const SocketAddress own = loopback();
    EXPECT_EQ(::bind(socket_.get(), own.get(), own.length()), 0);
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&storage), &length), 0);
    address = SocketAddress::from(reinterpret_cast<sockaddr*>(&storage));
    lease.watch(0);
  }
  void send(std::span<const std::byte> bytes) {
    EXPECT_EQ(::sendto(socket_.get(), bytes.data(), bytes.size(), 0, other_.get(), other_.length()),
              static_cast<ssize_t>(bytes.size()));
  }
  void ping() { send(lease.tick(Clock::now())[0].datagram); }
  /// The next datagram, or nothing within the limit.
  std::vector<std::byte> receive(std::chrono::milliseconds limit = kLimit) {
    std::vector<std::byte> bytes(100);
    if (!readable(socket_.get(), limit)) return {};
    bytes.resize(static_cast<std::size_t>(::recv(socket_.get(), bytes.data(), bytes.size(), 0)));
    return bytes;
  }
  /// Takes part as a process does, for one datagram.
  void answer() {
    if (const auto reply = lease.hear(receive())) send(reply->datagram);
  }
  void close() { socket_.reset(); }

 private:
  UniqueFd socket_{::socket(AF_INET, SOCK_DGRAM, 0)};
  SocketAddress other_;

 public:
  Lease lease;
  std::optional<SocketAddress> address;
};

struct Scene {
  LeaseThread thread{kPatience, loopback()};
  Puppet puppet{thread};

  Scene() { thread.start(0, kKey, {thread.address(), puppet.address}, {}); }
  std::vector<Lease::Verdict> verdicts() {
    EXPECT_TRUE(readable(thread.event_fd(), kLimit)) << "no verdict";
    return thread.poll();
  }
};

bool until(const std::function<bool()>& holds) {
  for (const TimePoint begin = Clock::now(); Clock::now() - begin < kLimit; std::this_thread::sleep_for(1ms)) {
    if (holds()) return true;
  }
  return false;
}

TEST(LeaseThread, answers_whatever_its_process_does) {
  Scene scene;
  scene.puppet.ping();
  EXPECT_FALSE(scene.puppet.lease.hear(scene.puppet.receive()));
  EXPECT_EQ(scene.puppet.lease.dropped(), 0u);
}

TEST(LeaseThread, wakes_the_worker_when_one_that_is_watched_falls_silent) {
  Scene scene;
  scene.thread.watch(1);
  for (int i = 0; i < 5; ++i) scene.puppet.answer();
  const TimePoint begin = Clock::now();
  const auto verdicts = scene.verdicts();
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].rank, 1);
  EXPECT_EQ(verdicts[0].why, Lease::Why::silent);
  EXPECT_GT(Clock::now() - begin, kPatience / 2);
  EXPECT_FALSE(readable(scene.thread.event_fd(), 0ms)) << "told once";
  EXPECT_TRUE(scene.thread.poll().empty());
}

TEST(LeaseThread, a_process_that_has_gone_is_refused_by_its_host_long_before_the_lease_ends) {
  LeaseThread thread(60s, loopback());
  Puppet puppet(thread);
  thread.start(0, kKey, {thread.address(), puppet.address}, {});
  thread.watch(1);
  puppet.answer();
  puppet.close();
  ASSERT_TRUE(readable(thread.event_fd(), kLimit));
  const auto verdicts = thread.poll();
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].why, Lease::Why::refused);
}

TEST(LeaseThread, two_of_them_keep_each_other) {
  LeaseThread one(kPatience, loopback()), other(kPatience, loopback());
  const std::vector<std::optional<SocketAddress>> addresses = {one.address(), other.address()};
  one.start(0, kKey, addresses, {});
  other.start(1, kKey, addresses, {});
  one.watch(1);
  other.watch(0);
  EXPECT_FALSE(readable(one.event_fd(), 2 * std::chrono::duration_cast<std::chrono::milliseconds>(kPatience)));
  EXPECT_FALSE(readable(other.event_fd(), 0ms));
}

TEST(LeaseThread, one_that_was_given_up_by_other_means_is_told_so) {
  LeaseThread one(kPatience, loopback()), other(kPatience, loopback());
  const std::vector<std::optional<SocketAddress>> addresses = {one.address(), other.address()};
  one.start(0, kKey, addresses, {});
  other.start(1, kKey, addresses, {});
  other.watch(0);
  one.give_up(1);
  ASSERT_TRUE(readable(other.event_fd(), kLimit));
  EXPECT_EQ(other.poll().at(0).why, Lease::Why::told);
}

TEST(LeaseThread, is_silent_once_the_worker_has_taken_what_it_was_told) {
  constexpr int kPeers = 300;
  LeaseThread thread(60s, loopback());
  Puppet puppet(thread);
  std::vector<std::optional<SocketAddress>> addresses(kPeers + 1, puppet.address);
  thread.start(0, kKey, addresses, {});
  // What each peer says to a ping of one that it has given up.
  Lease asking(0, kPeers + 1, 60s, kKey);
  for (int rank = 1; rank <= kPeers; ++rank) asking.watch(rank);
  int left_ringing = 0;
  for (const Lease::Outgoing& ping : asking.tick(Clock::now())) {
    Lease peer(ping.rank, kPeers + 1, 60s, kKey);
    peer.give_up(0);
    puppet.send(peer.hear(ping.datagram)->datagram);
    const TimePoint begin = Clock::now();
    while (thread.poll().empty()) ASSERT_LT(Clock::now() - begin, kLimit);  // at the very moment
    const std::uint64_t dropped = thread.dropped();
    puppet.send({});  // once that is dropped, the thread has gone around
    while (thread.dropped() == dropped) ASSERT_LT(Clock::now() - begin, kLimit);
    if (readable(thread.event_fd(), 0ms)) ++left_ringing;
  }
  EXPECT_EQ(left_ringing, 0);
}

TEST(LeaseThread, what_is_cut_short_too_long_foreign_or_replayed_is_dropped_and_counted) {
  Scene scene;
  scene.thread.watch(1);
  const std::vector<std::byte> ping = scene.puppet.receive();
  const Lease::Datagram answer = scene.puppet.lease.hear(ping)->datagram;
  std::uint64_t sent = 0;
  for (std::size_t bytes = 0; bytes < answer.size(); ++bytes, ++sent) scene.puppet.send(std::span(answer).first(bytes));
  std::vector<std::byte> longer(1000);
  std::copy(answer.begin(), answer.end(), longer.begin());
  scene.puppet.send(longer), ++sent;
  Puppet stranger(scene.thread, Lease::Key{});
  stranger.ping(), ++sent;
  scene.puppet.send(ping), ++sent;  // its own
  scene.puppet.send(answer);        // the only good one
  scene.puppet.send(answer), ++sent;
  EXPECT_TRUE(until([&] { return scene.thread.dropped() == sent; })) << scene.thread.dropped() << " of " << sent;
  EXPECT_TRUE(stranger.receive(0ms).empty()) << "a stranger was answered";
}

TEST(LeaseThread, an_idle_one_ends_at_once) {
  const TimePoint begin = Clock::now();
  {
    Scene scene;
  }
  {
    LeaseThread never_started(kPatience, loopback());
    never_started.watch(1);
  }
  EXPECT_LT(Clock::now() - begin, 5s);
}

}  // namespace
}  // namespace brant
