// Kills real processes at every stage of a transfer. The test starts itself under `brant run --keep-going`; rank 1 dies
// by SIGKILL, and the others must get `peer_lost` for everything they have with it, within a second, and go on talking
// to each other. With BRANT_TEST_OWN_HOSTS=1 each process is a host of its own, so that nothing but the network tells
// of the death.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/env.h"
#include "brant/brant.h"
#include "core/engine.h"
#include "support/killed_process.h"
#include "support/own_host.h"

namespace brant {
namespace {

using Clock = std::chrono::steady_clock;

/// What the survivors have under way with rank 1 when it dies.
enum class Scene {
  first_meeting,
  idle_receive,
  eager_flood,
  rendezvous_pending,
  mid_transfer,
  shaped_transfer,
  awaiting_ack,
  closing
};

struct SceneName {
  Scene scene;
  const char* name;
};
constexpr SceneName kScenes[] = {
    {Scene::first_meeting, "first_meeting"}, {Scene::idle_receive, "idle_receive"},
    {Scene::eager_flood, "eager_flood"},     {Scene::rendezvous_pending, "rendezvous_pending"},
    {Scene::mid_transfer, "mid_transfer"},   {Scene::shaped_transfer, "shaped_transfer"},
    {Scene::awaiting_ack, "awaiting_ack"},   {Scene::closing, "closing"}};

using test::fail;

/// Posts what the scene asks for; every status that comes back now or later must be ok or peer_lost.
struct Outstanding {
  std::vector<Op> ops;
  Memory of_device;  // if the processes have one
  std::vector<std::byte> of_heap;
  Buffer whole;
  std::size_t pending = 0;
  std::size_t lost = 0;
  std::size_t other = 0;

  Outstanding(Runtime& runtime, std::size_t count, std::size_t bytes) : ops(count) {
    if (runtime.device_kind() == MemoryKind::host) {
      of_heap.resize(count * bytes);
      whole = std::span(of_heap);
    } else {
      of_device = runtime.allocate(runtime.device_kind(), count * bytes);
      whole = of_device;
    }
  }

  /// The part of the memory that belongs to one operation.
  Buffer buffer(std::size_t i) {
    const std::size_t bytes = whole.bytes / ops.size();
    return {static_cast<std::byte*>(whole.data) + i * bytes, bytes, whole.kind};
  }
  Completion sink() {
    return {[](void* self, const OpResult& result) noexcept {
              auto& all = *static_cast<Outstanding*>(self);
              --all.pending;
              all.count(result.status);
            },
            this};
  }
  void count(Status status) {
    if (status == Status::peer_lost) ++lost;
    if (status != Status::ok && status != Status::peer_lost) {
      std::fprintf(stderr, "unexpected %s\n", std::string(status_name(status)).c_str());
      ++other;
    }
  }
  void track(Status posted) { posted == Status::in_progress ? static_cast<void>(++pending) : count(posted); }
};

std::size_t count_in(Scene scene) { return scene == Scene::eager_flood ? 600 : 4; }

bool dies_in_transfer(Scene scene) { return scene == Scene::mid_transfer || scene == Scene::shaped_transfer; }

std::size_t bytes_in(Scene scene) {
  if (scene == Scene::rendezvous_pending) return 4'000'000;
  return dies_in_transfer(scene) ? 20'000'000 : 64;
}

/// Of a buffer of this scene: all of it, or many runs.
Shape shape_in(Scene scene) {
  if (scene != Scene::shaped_transfer) return Shape::contiguous(bytes_in(scene));
  const ShapeDim runs{.count = bytes_in(scene) / 32, .stride = 32};
  return *Shape::strided(0, 24, {&runs, 1});
}

void post(Scene scene, Channel& channel, Outstanding& out) {
  const Shape shape = shape_in(scene);
  for (std::size_t i = 0; i < out.ops.size(); ++i) {
    Op& op = out.ops[i];
    const bool receives = scene == Scene::idle_receive || (dies_in_transfer(scene) && i % 2 == 0);
    if (receives) {
      op.delivered = out.sink();
      out.track(channel.post_recv(out.buffer(i), shape, op));
    } else {
      (scene == Scene::awaiting_ack ? op.delivered : op.source_free) = out.sink();
      out.track(channel.post_send(out.buffer(i), shape, op));
    }
  }
}

void die_in(Scene scene, Runtime& runtime, std::vector<Channel>& channels) {
  if (dies_in_transfer(scene)) {
    const Shape shape = shape_in(scene);
    // Matches the survivors' transfers and dies while they run.
    Outstanding out(runtime, 8, bytes_in(scene));
    for (std::size_t i = 0; i < out.ops.size(); ++i) {
      Op& op = out.ops[i];
      Channel& channel = channels[i / 4];
      (i % 2 == 0 ? op.source_free : op.delivered) = out.sink();
      out.track(i % 2 == 0 ? channel.post_send(out.buffer(i), shape, op) : channel.post_recv(out.buffer(i), shape, op));
    }
    const auto until = Clock::now() + std::chrono::milliseconds(15);
    while (Clock::now() < until) runtime.worker().progress();
    test::die();
  }
  static_cast<void>(runtime.worker().wait_until([] { return false; }, std::chrono::milliseconds(100)));
  test::die();
}

void survive(Scene scene, Runtime& runtime, Channel& to_dying, Channel& to_friend) {
  const int self = runtime.rank().value;
  Outstanding out(runtime, count_in(scene), bytes_in(scene));
  post(scene, to_dying, out);
  int token = self, got = -1;
  Op late;
  // The death itself is noticed by an operation that cannot complete otherwise.
  Operation sentinel = to_dying.recv(Buffer(&got, sizeof(int)));
  const Status status =
      runtime.worker().wait_until([&] { return out.pending == 0 && sentinel.done(); }, std::chrono::seconds(20));
  if (status != Status::ok) {
    std::fprintf(stderr, "rank %d: %zu operations still pending\n", self, out.pending);
    fail(self, "something hangs");
  }
  test::say_if_late();
  if (out.other != 0) fail(self, "a status that is neither ok nor peer_lost");
  if (sentinel.result().status != Status::peer_lost) fail(self, "the sentinel receive did not end with peer_lost");
  if (to_dying.post_send(ConstBuffer(&token, sizeof(int)), late) != Status::peer_lost)
    fail(self, "a later send was accepted");
  // All of it is counted, with the sentinel and the later send.
  const Counters& counters = runtime.worker().engine().counters();
  if (counters.failures.read() != out.lost + 2 || counters.peers_lost.read() != 1)
    fail(self, "the counters do not tell of the loss");
  // Life goes on with the other survivor.
  for (int round = 0; round < 100; ++round) {
    got = -1;
    Operation receive = to_friend.recv(Buffer(&got, sizeof(int)));
    Operation send = to_friend.send(ConstBuffer(&token, sizeof(int)));
    const Status talked =
        runtime.worker().wait_until([&] { return receive.done() && send.done(); }, std::chrono::seconds(5));
    if (talked != Status::ok || !receive.result().ok() || got != 2 - self)
      fail(self, "the survivors cannot talk any more");
  }
}

/// Turns to rank 1 for the first time once it has died. Towards the dead of its own host that is refused at once.
void meet_the_dead(Runtime& runtime) {
  if (runtime.rank().value == 1) test::die();
  while (test::since_death() == Clock::duration::max()) runtime.worker().progress();
  int got = -1;
  try {
    Channel to_dead = Channel::open(runtime, Rank{1}, ChannelId{1});
    Operation receive = to_dead.recv(Buffer(&got, sizeof(got)));
    const Status status = runtime.worker().wait_until([&] { return receive.done(); }, std::chrono::seconds(20));
    if (status != Status::ok || receive.result().status != Status::peer_lost)
      fail(runtime.rank().value, "a receive from a dead process did not end with peer_lost");
  } catch (const Error& error) {
    if (error.status() != Status::peer_lost) throw;
  }
  test::say_if_late();
}

/// Does not answer any more, and is dead a little later.
[[noreturn]] void stand_still_and_die(Runtime& runtime, std::vector<Channel>& channels) {
  const int word = 1;
  for (Channel& channel : channels) {
    Operation send = channel.send(ConstBuffer(&word, sizeof(word)));
    static_cast<void>(runtime.worker().wait_until([&] { return send.done(); }, std::chrono::seconds(5)));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  test::die();
}

/// Closes a channel with a message that nobody observes any more, and whose receiver does not answer. From a dead one
/// no answer is waited for.
void close_meanwhile(Runtime& runtime, Channel& to_dying) {
  const int self = runtime.rank().value;
  int word = 0;
  Operation receive = to_dying.recv(Buffer(&word, sizeof(word)));
  if (runtime.worker().wait_until([&] { return receive.done(); }, std::chrono::seconds(5)) != Status::ok)
    fail(self, "no word came");
  Memory source = runtime.allocate(MemoryKind::host, 4'000'000);
  {
    Operation forgotten = to_dying.send(source);
    if (forgotten.done()) fail(self, "the message has gone: nothing is tested");
  }
  const auto begin = Clock::now();
  to_dying.close();
  if (Clock::now() - begin > std::chrono::milliseconds(300) + test::kDeathPatience)
    fail(self, "the channel took too long to close");
}

int play(const std::string& name) {
  if (env_bool("BRANT_TEST_OWN_HOSTS", false) && !test::become_own_host()) return 2;
  for (const SceneName& known : kScenes) {
    if (name != known.name) continue;
    Runtime runtime;
    const int self = runtime.rank().value;
    if (known.scene == Scene::first_meeting) {
      meet_the_dead(runtime);
      std::printf("survived\n");
      return 0;
    }
    if (self == 1) {
      std::vector<Channel> channels;
      channels.push_back(Channel::open(runtime, Rank{0}, ChannelId{1}));
      channels.push_back(Channel::open(runtime, Rank{2}, ChannelId{2}));
      if (known.scene == Scene::closing) stand_still_and_die(runtime, channels);
      die_in(known.scene, runtime, channels);
    }
    Channel to_dying = Channel::open(runtime, Rank{1}, ChannelId{self == 0 ? 1u : 2u});
    Channel to_friend = Channel::open(runtime, Rank{2 - self}, ChannelId{3});
    if (known.scene == Scene::closing) {
      close_meanwhile(runtime, to_dying);
    } else {
      survive(known.scene, runtime, to_dying, to_friend);
    }
    std::printf("survived\n");
    return 0;
  }
  return 2;
}

class PeerDeath : public testing::TestWithParam<SceneName> {
 protected:
  void SetUp() override {
    if (env_bool("BRANT_TEST_OWN_HOSTS", false) && !test::own_hosts_allowed())
      GTEST_SKIP() << "this machine allows no process an IPC namespace of its own";
  }
};

TEST_P(PeerDeath, survivors_get_peer_lost_within_a_second_and_go_on) { test::expect_survivors(GetParam().name); }
INSTANTIATE_TEST_SUITE_P(Scenes, PeerDeath, testing::ValuesIn(kScenes),
                         [](const auto& scene) { return std::string(scene.param.name); });

/// The child processes of the test play their scene before any test runs.
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new test::SceneEnvironment(play));

}  // namespace
}  // namespace brant
