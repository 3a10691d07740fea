// A process of Jacobi3D dies by SIGKILL among its iterations, in which the kernels of the others wait for its own: they
// must hear of it within a second, by an error that names a rank and blocks.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "job.h"
#include "support/killed_process.h"

namespace jacobi {
namespace {

constexpr int kDying = 1;

Options options_of(const std::string& scene) {
  Options options;
  options.size = {48, 40, 36};
  options.model = Model::halo;
  options.halo = brant::HaloMode::direct;
  options.computes = scene != "exchanges";
  options.plan = {.iterations = 5, .warmup = 1, .overlap = scene == "overlapped"};
  return options;
}

/// Until it fails.
void iterate_until_lost(brant::Runtime& runtime, brant::Team& team, const Options& options) {
  try {
    run_job(runtime, team, options);
  } catch (const brant::Error& error) {
    brant::test::say_if_late();
    const std::string why = error.what();
    const bool names = why.find("halo: the exchange") == 0 && why.find("rank ") != std::string::npos;
    // Another survivor may have been quicker, and this one names that.
    const bool expected = error.status() == brant::Status::peer_lost || error.status() == brant::Status::canceled;
    std::printf("%s: %s\n", expected && names ? "survived" : "unexpected", why.c_str());
  }
}

int play(const std::string& scene) {
  brant::RuntimeOptions runtime_options = brant::RuntimeOptions::from_environment();
  runtime_options.gpu = brant::GpuChoice::emulated;
  brant::Runtime runtime(runtime_options);
  brant::Team team = brant::Team::world(runtime);
  Options options = options_of(scene);
  run_job(runtime, team, options);
  options.plan.iterations = 1'000'000'000;
  if (runtime.rank().value == kDying) {
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      brant::test::die();
    }).detach();
  }
  iterate_until_lost(runtime, team, options);
  return 0;
}

class JacobiDeath : public testing::TestWithParam<const char*> {};

TEST_P(JacobiDeath, ends_the_iterations_of_all_others_within_a_second) { brant::test::expect_survivors(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Scenes, JacobiDeath, testing::Values("sweeps", "overlapped", "exchanges"),
                         [](const auto& scene) { return std::string(scene.param); });

/// The child processes of the test play their scene before any test runs.
const testing::Environment* const g_environment =
    testing::AddGlobalTestEnvironment(new brant::test::SceneEnvironment(play));

}  // namespace
}  // namespace jacobi
