// A process dies by SIGKILL while another waits for a bell that it was to ring, from its CPU or its device, or for a
// part of a message; or while parts for it are not ready. Who waits hears of it within a second, is told which bell or
// message it was, and goes on.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/device.h"
#include "brant/notify.h"
#include "brant/partitioned/partitioned.h"
#include "support/killed_process.h"
#include "support/outcome_in_time.h"

namespace brant {
namespace {

constexpr const char* kScenes[] = {"host", "device", "part", "taker"};

using test::fail;

void require(Runtime& runtime, const Operation& operation, const char* what) {
  if (test::outcome_in_time(runtime, operation) != Status::ok) fail(runtime.rank().value, what);
}

/// The channel by which the ticket of a bell goes to who rings it: an id is open with one process at a time.
ChannelId way(int owner, int ringer) { return ChannelId{static_cast<std::uint32_t>(10 + 3 * owner + ringer)}; }

/// A bell that `ringer` rings: its ticket goes there by a channel.
Bell bell_of(Runtime& runtime, Notifier& notifier, int ringer) {
  Bell bell = notifier.make({.rung_by = RungBy::peer, .seen_by = SeenBy::host, .peer = Rank{ringer}});
  Channel channel = Channel::open(runtime, Rank{ringer}, way(runtime.rank().value, ringer));
  const BellTicket ticket = bell.ticket();
  require(runtime, channel.send(ConstBuffer(ticket.bytes()), Moment::delivered), "the ticket was not sent");
  return bell;
}

PeerBell peer_bell(Runtime& runtime, int owner) {
  std::vector<std::byte> bytes(BellTicket::kBytesMax);
  Channel channel = Channel::open(runtime, Rank{owner}, way(owner, runtime.rank().value));
  Operation got = channel.recv(std::span(bytes));
  require(runtime, got, "the ticket did not come");
  bytes.resize(got.result().bytes);
  return PeerBell(runtime, Rank{owner}, BellTicket(bytes));
}

Status ring(PeerBell& bell, bool by_device, const Stream& stream) {
  static std::uint64_t epoch = 0;
  return by_device ? bell.enqueue_ring(stream, ++epoch) : bell.ring(++epoch);
}

/// Rank 1 rings once, and dies instead of ringing again.
[[noreturn]] void die_after_a_ring(const std::string& scene, Runtime& runtime, const Stream& stream) {
  if (scene == "part") {
    Channel channel = Channel::open(runtime, Rank{0}, ChannelId{2});
    PartitionedSend sender(runtime, std::move(channel), {.parts = 2, .bytes_min = 0});
    const std::vector<int> source(100, 7);
    Operation sent = sender.send(std::span(source), 1, Moment::delivered);
    static_cast<void>(sender.ready(1));
    static_cast<void>(runtime.worker().wait_until([&] { return sent.done(); }, std::chrono::milliseconds(300)));
    test::die();
  }
  if (scene == "taker") {
    PartitionedReceive receiver(runtime, Channel::open(runtime, Rank{0}, ChannelId{2}), {.parts = 2});
    std::vector<int> landing(100);
    Operation all = receiver.receive(std::span(landing), 1);
    static_cast<void>(runtime.worker().wait_until([&] { return all.done(); }, std::chrono::milliseconds(300)));
    test::die();
  }
  PeerBell bell = peer_bell(runtime, 0);
  if (ring(bell, scene == "device", stream) != Status::ok) fail(1, "it cannot ring");
  static_cast<void>(runtime.worker().wait_until([] { return false; }, std::chrono::milliseconds(300)));
  test::die();
}

void lose_the_ringer(const std::string& scene, Runtime& runtime, Notifier& notifier) {
  if (scene == "part") {
    PartitionedReceive receiver(runtime, Channel::open(runtime, Rank{1}, ChannelId{2}), {.parts = 2});
    std::vector<int> landing(100);
    Operation all = receiver.receive(std::span(landing), 1);
    Operation never = receiver.when(0);
    require(runtime, receiver.when(1), "the part that was sent did not come");
    if (test::outcome_in_time(runtime, never) != Status::peer_lost)
      fail(0, "the death was not the outcome of the part");
    test::say_if_late();
    if (test::outcome_in_time(runtime, all) != Status::peer_lost)
      fail(0, "the death was not the outcome of the message");
    return;
  }
  if (scene == "taker") {
    PartitionedSend sender(runtime, Channel::open(runtime, Rank{1}, ChannelId{2}), {.parts = 2}, &notifier);
    const std::vector<int> source(100, 7);
    if (test::outcome_in_time(runtime, sender.send(std::span(source), 1)) != Status::peer_lost)
      fail(0, "no part was ready");
    test::say_if_late();
    if (test::outcome_in_time(runtime, sender.send(std::span(source), 2)) != Status::peer_lost)
      fail(0, "a later message goes");
    return;
  }
  Bell bell = bell_of(runtime, notifier, 1);
  require(runtime, bell.when(1), "the ring did not come");
  Operation never = bell.when(2);
  if (test::outcome_in_time(runtime, never) != Status::peer_lost) fail(0, "the death was not the outcome");
  test::say_if_late();
  if (test::outcome_in_time(runtime, bell.when(2)) != Status::peer_lost) fail(0, "a later wait does not say so");
  require(runtime, bell.when(1), "what was rung before is not there any more");
}

int play(const std::string& scene) {
  Runtime runtime;
  const int self = runtime.rank().value;
  Stream stream = runtime.device().create_stream();
  if (self == 1) die_after_a_ring(scene, runtime, stream);
  Notifier notifier(runtime, {.bells = 16, .others = 16, .waits = 64});
  if (self == 0) lose_the_ringer(scene, runtime, notifier);
  // The survivors go on, each way.
  if (self == 0) {
    PeerBell there = peer_bell(runtime, 2);
    Bell here = bell_of(runtime, notifier, 2);
    if (there.ring(1) != Status::ok) fail(self, "it cannot ring");
    require(runtime, here.when(1), "no ring of the other survivor");
  } else {
    Bell here = bell_of(runtime, notifier, 0);
    PeerBell there = peer_bell(runtime, 0);
    require(runtime, here.when(1), "no ring of the other survivor");
    if (there.ring(1) != Status::ok) fail(self, "it cannot ring");
  }
  std::printf("survived\n");
  return 0;
}

class NotifyDeath : public testing::TestWithParam<const char*> {};

TEST_P(NotifyDeath, who_waits_for_the_dead_gets_peer_lost_within_a_second_and_goes_on) {
  test::expect_survivors(GetParam());
}
INSTANTIATE_TEST_SUITE_P(Scenes, NotifyDeath, testing::ValuesIn(kScenes),
                         [](const auto& scene) { return std::string(scene.param); });

/// The child processes of the test play their scene before any test runs.
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new test::SceneEnvironment(play));

}  // namespace
}  // namespace brant
