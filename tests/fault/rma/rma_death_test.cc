// The owner of a segment dies by SIGKILL while others put into it, get from it, and count in it. They must learn of it
// within a second, and go on using each other's segments.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "core/engine.h"
#include "support/killed_process.h"

namespace brant {
namespace {

using Clock = std::chrono::steady_clock;

/// Of which memory, on which path, and in transfers of which size.
struct Scene {
  const char* name;
  Path path;
  bool of_heap;
  std::size_t bytes;
  bool counts = false;  ///< By atomics, instead of puts and gets.
};
constexpr Scene kScenes[] = {{"shm_small", Path::shm, false, 64},
                             {"shm_large", Path::shm, false, 8'000'000},
                             {"ucx_small", Path::ucx, true, 64},
                             {"ucx_large", Path::ucx, true, 8'000'000},
                             {"staged_large", Path::staged, true, 8'000'000},
                             {"atomics_shm", Path::shm, false, 8, true},
                             {"atomics_ucx", Path::ucx, true, 8, true}};
constexpr std::size_t kSegmentBytes = 16'000'000;

using test::fail;

/// Tickets go from the owner to each user over a channel.
void give_ticket(Runtime& runtime, int to, const SegmentTicket& ticket, std::uint32_t id) {
  Channel channel = Channel::open(runtime, Rank{to}, ChannelId{id});
  Operation send = channel.send(ConstBuffer(&ticket, sizeof(ticket), MemoryKind::host), Moment::delivered);
  static_cast<void>(runtime.worker().wait_until([&] { return send.done(); }, std::chrono::seconds(10)));
  if (!send.result().ok()) fail(runtime.rank().value, "no ticket was delivered");
}
SegmentTicket take_ticket(Runtime& runtime, int from, std::uint32_t id) {
  Channel channel = Channel::open(runtime, Rank{from}, ChannelId{id});
  SegmentTicket ticket;
  Operation receive = channel.recv(Buffer(&ticket, sizeof(ticket), MemoryKind::host));
  static_cast<void>(runtime.worker().wait_until([&] { return receive.done(); }, std::chrono::seconds(10)));
  if (!receive.result().ok()) fail(runtime.rank().value, "no ticket came");
  return ticket;
}

struct Space {
  Space(Runtime& runtime, bool of_heap) {
    if (of_heap) {
      heap.resize(kSegmentBytes);
      whole = std::span(heap);
      whole.kind = MemoryKind::host;
    } else {
      memory = runtime.allocate(MemoryKind::host, kSegmentBytes);
      whole = memory;
    }
  }
  Memory memory;
  std::vector<std::byte> heap;
  Buffer whole;
};

/// Stays where it is, so it is made where it lies.
std::unique_ptr<Operation> begin(const Scene& scene, RemoteSegment& there, std::uint64_t offset, Buffer local,
                                 bool puts) {
  if (scene.counts) {
    const auto count = Atomic::of<std::uint64_t>(AtomicOp::add, 1);
    return std::unique_ptr<Operation>(new Operation(there.atomic(offset, count, scene.path)));
  }
  return std::unique_ptr<Operation>(puts ? new Operation(there.put(offset, local, {.path = scene.path}))
                                         : new Operation(there.get(offset, local, {.path = scene.path})));
}

/// Puts and gets until one of them ends with peer_lost; none may end otherwise but with ok.
void use_until_lost(const Scene& scene, Runtime& runtime, RemoteSegment& there) {
  const int self = runtime.rank().value;
  const Memory local = runtime.allocate(MemoryKind::host, scene.bytes);
  std::memset(local.data(), self, local.bytes());
  constexpr std::size_t kWindow = 8;
  const auto give_up = Clock::now() + std::chrono::seconds(20);
  for (bool lost = false; !lost;) {
    std::vector<std::unique_ptr<Operation>> operations;
    for (std::size_t i = 0; i < kWindow; ++i) {
      const std::uint64_t offset = static_cast<std::uint64_t>(self / 2) * scene.bytes;
      operations.push_back(begin(scene, there, offset, local, i % 2 == 0));
    }
    for (const auto& operation : operations) {
      if (runtime.worker().wait_until([&] { return operation->done(); }, std::chrono::seconds(10)) != Status::ok)
        fail(self, "something hangs");
      const Status status = operation->result().status;
      if (status == Status::peer_lost) lost = true;
      if (status == Status::ok || status == Status::peer_lost) continue;
      std::fprintf(stderr, "unexpected %s\n", std::string(status_name(status)).c_str());
      fail(self, "a status that is neither ok nor peer_lost");
    }
    // What is mapped can be written for ever: it is the worker that learns of the death.
    static_cast<void>(runtime.worker().progress());
    if (Clock::now() > give_up) fail(self, "the death was never told");
  }
  test::say_if_late();
  if (there.pending() != 0) fail(self, "operations are pending after the death");
  if (begin(scene, there, 0, local, true)->result().status != Status::peer_lost) fail(self, "a later one was accepted");
}

int play(const std::string& name) {
  for (const Scene& scene : kScenes) {
    if (name != scene.name) continue;
    Runtime runtime;
    const int self = runtime.rank().value;
    Space space(runtime, scene.of_heap);
    const Segment segment = expose(runtime, space.whole);
    if (self == 1) {
      give_ticket(runtime, 0, segment.ticket(), 1);
      give_ticket(runtime, 2, segment.ticket(), 2);
      static_cast<void>(runtime.worker().wait_until([] { return false; }, std::chrono::milliseconds(100)));
      test::die();
    }
    RemoteSegment dying(runtime, Rank{1}, take_ticket(runtime, 1, self == 0 ? 1u : 2u));
    SegmentTicket of_friend;
    if (self == 0) {
      give_ticket(runtime, 2, segment.ticket(), 3);
      of_friend = take_ticket(runtime, 2, 4);
    } else {
      of_friend = take_ticket(runtime, 0, 3);
      give_ticket(runtime, 0, segment.ticket(), 4);
    }
    RemoteSegment living(runtime, Rank{2 - self}, of_friend);
    use_until_lost(scene, runtime, dying);
    // Life goes on with the other survivor, and the way to the dead can be closed.
    dying.close();
    std::uint64_t word = 40 + static_cast<std::uint64_t>(self), back = 0;
    Operation put = living.put(8, ConstBuffer(&word, sizeof(word), MemoryKind::host));
    static_cast<void>(runtime.worker().wait_until([&] { return put.done(); }, std::chrono::seconds(10)));
    Operation get = living.get(8, Buffer(&back, sizeof(back), MemoryKind::host));
    static_cast<void>(runtime.worker().wait_until([&] { return get.done(); }, std::chrono::seconds(10)));
    if (!put.done() || !put.result().ok() || !get.done() || back != word) fail(self, "the survivors lost each other");
    // Until the other one is done with our segment too.
    Channel farewell = Channel::open(runtime, Rank{2 - self}, ChannelId{9});
    Operation sent = farewell.send(ConstBuffer(&word, sizeof(word), MemoryKind::host));
    Operation received = farewell.recv(Buffer(&back, sizeof(back), MemoryKind::host));
    static_cast<void>(
        runtime.worker().wait_until([&] { return sent.done() && received.done(); }, std::chrono::seconds(10)));
    std::printf("survived\n");
    return 0;
  }
  return 2;
}

class RmaDeath : public testing::TestWithParam<Scene> {};

TEST_P(RmaDeath, users_of_the_segment_get_peer_lost_within_a_second_and_go_on) {
  test::expect_survivors(GetParam().name);
}
INSTANTIATE_TEST_SUITE_P(Scenes, RmaDeath, testing::ValuesIn(kScenes),
                         [](const auto& scene) { return std::string(scene.param.name); });

/// The child processes of the test play their scene before any test runs.
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new test::SceneEnvironment(play));

}  // namespace
}  // namespace brant
