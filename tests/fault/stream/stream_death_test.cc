// A process dies by SIGKILL while a kernel of another waits for it, or that process waits to meet it. The kernel gives
// up with the reason within a second, and the survivors go on with each other.
#include <chrono>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/device.h"
#include "support/killed_process.h"
#include "support/outcome_in_time.h"

namespace brant {
namespace {

constexpr const char* kScenes[] = {"preparing", "receiving", "sending"};
constexpr ChannelId kId{3};
constexpr std::size_t kLarge = 1'000'000;

using test::fail;

StreamChannel met(Runtime& runtime, int peer) {
  StreamChannel channel = StreamChannel::open(runtime, Rank{peer}, kId);
  Operation prepared = channel.prepare();
  if (test::outcome_in_time(runtime, prepared) != Status::ok) fail(runtime.rank().value, "the two ends did not meet");
  return channel;
}

/// The death comes while this waits.
void lose_rank_1(const std::string& scene, Runtime& runtime, const Stream& stream) {
  StreamChannel channel = scene == "preparing" ? StreamChannel::open(runtime, Rank{1}, kId) : met(runtime, 1);
  const Memory memory = runtime.allocate(runtime.device_kind(), kLarge);
  Operation waits(scene == "sending" ? Moment::source_free : Moment::delivered, [&](Op& op) noexcept {
    if (scene == "preparing") return channel.post_prepare(op);
    const OnStream on{.stream = stream, .op = &op};
    return scene == "sending" ? channel.send(memory, on) : channel.recv(memory, on);
  });
  if (test::outcome_in_time(runtime, waits) != Status::peer_lost)
    fail(runtime.rank().value, "the death was not the outcome");
  test::say_if_late();
  if (channel.state() != Status::peer_lost) fail(runtime.rank().value, "the channel does not say why it ended");
  if (channel.send(memory, {.stream = stream}) != Status::peer_lost) fail(runtime.rank().value, "a later send goes");
}

/// Each sends its rank, and gets that of the other.
void exchange(Runtime& runtime, StreamChannel& channel, const Stream& stream) {
  const int self = runtime.rank().value;
  const Memory face = runtime.allocate(runtime.device_kind(), sizeof(int));
  const Memory ghost = runtime.allocate(runtime.device_kind(), sizeof(int));
  runtime.copy(face, ConstBuffer(&self, sizeof(self), MemoryKind::host));
  if (channel.recv_start(ghost, {.stream = stream}) != Status::ok ||
      channel.send(face, {.stream = stream}) != Status::ok)
    fail(self, "the exchange was not queued");
  Operation end(Moment::delivered, [&](Op& op) noexcept { return channel.recv_finish({.stream = stream, .op = &op}); });
  if (test::outcome_in_time(runtime, end) != Status::ok) fail(self, "the survivors lost each other");
  int got = -1;
  runtime.copy(Buffer(&got, sizeof(got), MemoryKind::host), ghost);
  if (got != channel.peer().value) fail(self, "what came is not what was sent");
}

int play(const std::string& scene) {
  Runtime runtime;
  const int self = runtime.rank().value;
  const Stream stream = runtime.device().create_stream();
  if (self == 1) {
    StreamChannel channel;
    if (scene != "preparing") channel = met(runtime, 0);
    static_cast<void>(runtime.worker().wait_until([] { return false; }, std::chrono::milliseconds(200)));
    test::die();
  }
  StreamChannel living = met(runtime, 2 - self);
  if (self == 0) lose_rank_1(scene, runtime, stream);
  exchange(runtime, living, stream);
  exchange(runtime, living, stream);
  std::printf("survived\n");
  return 0;
}

class StreamDeath : public testing::TestWithParam<const char*> {};

TEST_P(StreamDeath, who_waits_for_the_dead_gets_peer_lost_within_a_second_and_goes_on) {
  test::expect_survivors(GetParam());
}
INSTANTIATE_TEST_SUITE_P(Scenes, StreamDeath, testing::ValuesIn(kScenes),
                         [](const auto& scene) { return std::string(scene.param); });

/// The child processes of the test play their scene before any test runs.
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new test::SceneEnvironment(play));

}  // namespace
}  // namespace brant
