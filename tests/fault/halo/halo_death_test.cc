// A process of a halo exchange dies by SIGKILL, at some moment of one of many exchanges: the others must hear of it
// within a second, by an error that names a rank and blocks, and not by a kernel that never ends.
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/halo.h"
#include "support/killed_process.h"

namespace brant {
namespace {

struct Scene {
  const char* name;
  HaloMode mode;
  MemoryKind kind;
  HaloMessages messages = HaloMessages::per_process;
};
constexpr Scene kScenes[] = {
    {"fused_host", HaloMode::fused, MemoryKind::host},
    {"fused_device", HaloMode::fused, MemoryKind::emulated},
    {"direct_host", HaloMode::direct, MemoryKind::host},
    {"direct_device", HaloMode::direct, MemoryKind::emulated},
    {"graph_device", HaloMode::graph, MemoryKind::emulated},
    {"resident_device", HaloMode::resident, MemoryKind::emulated},
    {"stream_device", HaloMode::stream, MemoryKind::emulated},
    {"stream_per_block_device", HaloMode::stream, MemoryKind::emulated, HaloMessages::per_block},
    {"stacked_device", HaloMode::stacked, MemoryKind::emulated}};

constexpr int kDying = 1;
constexpr int kCyclesBefore = 5;

/// Until an exchange fails.
int exchange_until_lost(Runtime& runtime, HaloExchange& exchange, const std::vector<Buffer>& fields) {
  try {
    for (;;) runtime.run(exchange.run(fields));
  } catch (const Error& error) {
    test::say_if_late();
    const std::string why = error.what();
    const bool names = why.find("halo: the ") == 0 && why.find("rank ") != std::string::npos;
    // Another survivor may have been quicker: it has closed its channels, and this one names that.
    const bool expected = error.status() == Status::peer_lost || error.status() == Status::canceled;
    std::printf("%s: %s\n", expected && names ? "survived" : "unexpected", why.c_str());
  }
  return 0;
}

int play(const std::string& name) {
  for (const Scene& scene : kScenes) {
    if (name != scene.name) continue;
    RuntimeOptions options = RuntimeOptions::from_environment();
    options.gpu = scene.kind == MemoryKind::emulated ? GpuChoice::emulated : GpuChoice::none;
    Runtime runtime(options);
    HaloExchange exchange(runtime, {.grid = {60, 40, 40},
                                    .divide = {3, 1, 1},
                                    .periodic = {true, true, true},
                                    .mode = scene.mode,
                                    .messages = scene.messages});
    const Memory field = runtime.allocate(scene.kind, exchange.field_bytes(0));
    const std::vector<Buffer> fields{field};
    for (int i = 0; i < kCyclesBefore; ++i) runtime.run(exchange.run(fields));
    if (runtime.rank().value != kDying) return exchange_until_lost(runtime, exchange, fields);
    Task<void> last = exchange.run(fields);
    last.start();
    runtime.worker().progress();
    test::die();
  }
  return 2;
}

class HaloDeath : public testing::TestWithParam<Scene> {};

TEST_P(HaloDeath, ends_the_exchange_of_all_others_within_a_second) { test::expect_survivors(GetParam().name); }
INSTANTIATE_TEST_SUITE_P(Scenes, HaloDeath, testing::ValuesIn(kScenes),
                         [](const auto& scene) { return std::string(scene.param.name); });

/// The child processes of the test play their scene before any test runs.
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new test::SceneEnvironment(play));

}  // namespace
}  // namespace brant
