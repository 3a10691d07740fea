#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "support/beside_this_test.h"
#include "support/effort.h"

/// For tests that start themselves as a job (`brant run --keep-going`) in which a process dies by SIGKILL.
namespace brant::test {

/// How soon survivors must know.
#ifdef __SANITIZE_ADDRESS__
inline constexpr auto kDeathPatience = std::chrono::seconds(5);  // instrumented memory takes long to tear down
#else
inline constexpr auto kDeathPatience = std::chrono::seconds(1);
#endif

/// Dies, after writing down when. steady_clock is the same for all processes of a host.
[[noreturn]] inline void die() {
  if (FILE* file = std::fopen(std::getenv("BRANT_TEST_DEATH_FILE"), "w"); file != nullptr) {
    std::fprintf(file, "%lld\n", static_cast<long long>(std::chrono::steady_clock::now().time_since_epoch().count()));
    std::fclose(file);
  }
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

/// In a process of a scene: something is not as it should be.
[[noreturn]] inline void fail(int rank, const char* what) {
  std::fprintf(stderr, "rank %d: %s\n", rank, what);
  std::_Exit(3);
}

/// In a survivor.
inline std::chrono::steady_clock::duration since_death() {
  using Clock = std::chrono::steady_clock;
  long long ticks = 0;
  FILE* file = std::fopen(std::getenv("BRANT_TEST_DEATH_FILE"), "r");
  if (file == nullptr) return Clock::duration::max();
  const int read = std::fscanf(file, "%lld", &ticks);
  std::fclose(file);
  return read == 1 ? Clock::now().time_since_epoch() - Clock::duration(ticks) : Clock::duration::max();
}

/// In a survivor that has just learned of the death: says so if that was late.
inline void say_if_late() {
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(since_death());
  if (took > kDeathPatience) std::fprintf(stderr, "late: %lld ms\n", static_cast<long long>(took.count()));
}

/// Runs a command and gives its output and exit code.
inline std::pair<std::string, int> output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {"popen failed", -1};
  char line[512];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) text += line;
  const int status = ::pclose(pipe);
  return {text, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

/// Plays a scene (the environment variable BRANT_TEST_SCENE) in `ranks` processes of this very program, started by the
/// `brant` that lies beside it.
inline std::pair<std::string, int> play_scene(const std::string& scene, int ranks) {
  const char* folder = std::getenv("TMPDIR");
  const std::string death_file =
      std::string(folder != nullptr ? folder : "/tmp") + "/brant_death_" + std::to_string(::getpid());
  auto result = output_of(beside_this_test("brant") + " run -n " + std::to_string(ranks) +
                          " --keep-going --timeout 40 --env BRANT_TEST_SCENE=" + scene +
                          " --env BRANT_TEST_DEATH_FILE=" + death_file + " -- " + this_test().string());
  std::remove(death_file.c_str());
  return result;
}

/// Plays a scene some times (a death comes at another moment each time), and lets `check(text, code)` look at each. In
/// each all survivors must have known in time.
template <typename Check>
void expect_of_plays(const std::string& scene, int ranks, Check&& check) {
  for (int play = 0; play < effort(3, 1); ++play) {
    const auto [text, code] = play_scene(scene, ranks);
    check(text, code);
    EXPECT_EQ(text.find("late: "), std::string::npos) << text;
  }
}

/// Of three processes rank 1 dies, and the two others survive.
inline void expect_survivors(const std::string& scene) {
  expect_of_plays(scene, 3, [](const std::string& text, int code) {
    EXPECT_NE(text.find("[0] survived"), std::string::npos) << text;
    EXPECT_NE(text.find("[2] survived"), std::string::npos) << text;
    EXPECT_EQ(code, 128 + SIGKILL) << text;
  });
}

/// In the processes of the job: plays their scene before any test runs, and ends as programs do (with the leak check
/// of a sanitized build).
class SceneEnvironment final : public testing::Environment {
 public:
  using Play = int (*)(const std::string& scene);
  explicit SceneEnvironment(Play play) : play_(play) {}
  void SetUp() override {
    const char* scene = std::getenv("BRANT_TEST_SCENE");
    if (scene == nullptr) return;
    int code = 1;
    try {
      code = play_(scene);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "threw: %s\n", error.what());
    }
    std::exit(code);
  }

 private:
  Play play_;
};

}  // namespace brant::test
