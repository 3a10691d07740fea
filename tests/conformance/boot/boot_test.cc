// Every bootstrap adapter keeps the same promises. Each test starts a job of boot_probe processes, which check them
// from the inside, the way users start jobs: alone, with `brant run`, with a stand-in for torchrun, and with the mpirun
// of Open MPI 4 and 5, and with MPICH's mpiexec.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/beside_this_test.h"

namespace {

using brant::test::beside_this_test;

struct Outcome {
  int exit_code = -1;
  std::string output;
};

Outcome shell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = ::popen(fmt::format("{} 2>&1 </dev/null", command).c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> piece{};
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe))
    outcome.output.append(piece.data(), got);
  const int status = ::pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

enum class Way { single, launcher, torchrun, open_mpi_4, open_mpi_5, mpich };

struct Launch {
  Way way = Way::single;
  int ranks = 1;
};

const char* way_name(Way way) {
  switch (way) {
    case Way::single: return "single";
    case Way::launcher: return "brant_run";
    case Way::torchrun: return "torchrun";
    case Way::open_mpi_4: return "open_mpi_4";
    case Way::open_mpi_5: return "open_mpi_5";
    case Way::mpich: return "pmi";
  }
  return "unknown";
}

std::string launch_name(const testing::TestParamInfo<Launch>& info) {
  return fmt::format("{}_{}", way_name(info.param.way), info.param.ranks);
}

bool by_mpirun(Way way) { return way == Way::open_mpi_4 || way == Way::open_mpi_5; }

/// Its mpirun, from where `make setup` unpacks the launchers.
std::string mpirun(Way way) {
  return fmt::format("{}/bin/mpirun-{}", BRANT_TEST_LAUNCHERS, way == Way::open_mpi_4 ? 4 : 5);
}

/// That of the wheel, which is installed beside the Python of the build.
std::string mpiexec() { return BRANT_TEST_MPIEXEC; }

class BootTest : public testing::TestWithParam<Launch> {
 protected:
  void SetUp() override {
    if (GetParam().way == Way::mpich && ::access(mpiexec().c_str(), X_OK) != 0)
      GTEST_SKIP() << "no MPICH in .venv: make setup installs its wheel";
    if (!by_mpirun(GetParam().way)) return;
    if (::access(mpirun(GetParam().way).c_str(), X_OK) != 0)
      GTEST_SKIP() << "no " << way_name(GetParam().way) << " in .launchers: make setup unpacks it where there is apt";
  }

  /// Starts the job and waits for its end; 124 if it takes longer than a minute.
  Outcome run(const std::string& scenario, const std::string& launcher_options = "") {
    const auto [way, ranks] = GetParam();
    const std::string probe = fmt::format("{} {}", beside_this_test("boot_probe"), scenario);
    const std::string prefix = fmt::format("PROBE_SIZE={} timeout -k 5 60", ranks);
    switch (way) {
      case Way::single: return shell(fmt::format("{} {}", prefix, probe));
      case Way::launcher:
        return shell(
            fmt::format("{} {} run -n {} {} -- {}", prefix, beside_this_test("brant"), ranks, launcher_options, probe));
      case Way::torchrun:
        return shell(fmt::format("{} python3 {}/torchrun.py -n {} {}", prefix, BRANT_TEST_SUPPORT, ranks, probe));
      case Way::mpich: return shell(fmt::format("{} {} -n {} {}", prefix, mpiexec(), ranks, probe));
      case Way::open_mpi_4:
      case Way::open_mpi_5: break;
    }
    // The PMIx library keeps memory until the end; that is not what the leak checker is here for.
    return shell(fmt::format("ASAN_OPTIONS=detect_leaks=0 {} {} --oversubscribe --bind-to none {} -n {} {}", prefix,
                             mpirun(way), ::geteuid() == 0 ? "--allow-run-as-root" : "", ranks, probe));
  }

  void expect_good(const std::string& scenario) {
    const Outcome outcome = run(scenario);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  }
};

TEST_P(BootTest, every_process_knows_its_place_and_sees_all_records) { expect_good("ranks"); }
TEST_P(BootTest, many_fences_keep_values_apart) { expect_good("rounds"); }
TEST_P(BootTest, values_of_one_mebibyte_and_of_nothing_arrive) { expect_good("big"); }
TEST_P(BootTest, a_key_put_again_has_the_new_value_after_the_next_fence) { expect_good("overwrites"); }
TEST_P(BootTest, a_missing_key_is_not_found_at_once) { expect_good("missing"); }
TEST_P(BootTest, bad_keys_values_and_ranks_are_refused) { expect_good("bad_input"); }
TEST_P(BootTest, a_fence_that_timed_out_can_be_tried_again) { expect_good("late"); }
TEST_P(BootTest, a_fence_that_was_given_up_does_not_keep_the_process) { expect_good("abandons"); }
TEST_P(BootTest, bootstrap_opens_again_after_finalize_but_not_twice_at_once) { expect_good("reopens"); }

TEST_P(BootTest, abort_ends_all_processes_with_its_code_and_message) {
  const Outcome outcome = run("aborts");
  EXPECT_EQ(outcome.exit_code, 42) << outcome.output;
  if (!by_mpirun(GetParam().way)) {
    EXPECT_NE(outcome.output.find("the answer was found"), std::string::npos) << outcome.output;
  }
}

TEST_P(BootTest, the_right_adapter_is_chosen) {
  const Outcome outcome = run("name");
  const auto name_of = [](Way way) {
    if (way == Way::launcher) return "brant run";
    return by_mpirun(way) ? "pmix" : way_name(way);
  };
  const char* name = name_of(GetParam().way);
  EXPECT_NE(outcome.output.find(fmt::format("bootstrap={} rank=0 size={}", name, GetParam().ranks)), std::string::npos)
      << outcome.output;
}

class BootDeathTest : public BootTest {};

TEST_P(BootDeathTest, a_killed_process_fails_the_fence_of_the_others_by_name) {
  const Outcome outcome = run("killed", "--keep-going");
  // 128 + SIGKILL: the survivors saw what they should and ended well, so the first failure is the kill.
  EXPECT_EQ(outcome.exit_code, 137) << outcome.output;
  EXPECT_EQ(outcome.output.find("last error"), std::string::npos) << outcome.output;
}

TEST_P(BootDeathTest, a_process_that_quits_fails_the_fence_of_the_others) {
  const Outcome outcome = run("quits", "--keep-going");
  EXPECT_EQ(outcome.output.find("last error"), std::string::npos) << outcome.output;
  // mpirun takes an end without finalize for a failure.
  if (GetParam().way == Way::launcher) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  }
}

TEST_P(BootDeathTest, a_fence_cannot_succeed_without_a_process_that_ended_well) {
  const Outcome outcome = run("leaves");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

/// PMI-1 tells nobody of a death: the launcher ends them all.
TEST(BootOfMpich, a_killed_process_ends_the_job_and_one_that_left_fails_the_fence) {
  if (::access(mpiexec().c_str(), X_OK) != 0) GTEST_SKIP() << "no MPICH in .venv: make setup installs its wheel";
  const auto run = [](const char* scenario) {
    return shell(fmt::format("timeout -k 5 15 {} -n 3 {} {}", mpiexec(), beside_this_test("boot_probe"), scenario));
  };
  const Outcome killed = run("killed");
  EXPECT_EQ(killed.exit_code, 9) << killed.output;
  EXPECT_EQ(killed.output.find("last error"), std::string::npos) << killed.output;
  const Outcome left = run("leaves");
  EXPECT_EQ(left.exit_code, 0) << left.output;
}

TEST(BootSelection, pmix_without_the_library_says_where_it_looked_and_what_to_install) {
  const Outcome outcome = shell(fmt::format(
      "PMIX_NAMESPACE=job PMIX_RANK=0 PMIX_SERVER_URI2=none BRANT_PMIX_LIBRARY=/nowhere/libpmix.so.2 {} name",
      beside_this_test("boot_probe")));
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_NE(outcome.output.find("/nowhere/libpmix.so.2"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("libpmix2"), std::string::npos) << outcome.output;
}

TEST(BootSelection, a_pmix_server_that_never_answers_is_given_up_and_named) {
  if (::access(mpirun(Way::open_mpi_5).c_str(), X_OK) != 0) GTEST_SKIP() << "no libpmix of Open MPI 5 in .launchers";
  // It accepts connections and says nothing, as a stopped server does.
  const int silent = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(silent, 8), 0);
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::string uri = fmt::format("tcp4://127.0.0.1:{}", ntohs(address.sin_port));
  const Outcome outcome = shell(
      fmt::format("ASAN_OPTIONS=detect_leaks=0 BRANT_BOOT_TIMEOUT_MS=300 PMIX_PREFIX={}/openmpi5 PMIX_NAMESPACE=job "
                  "PMIX_RANK=0 PMIX_SERVER_URI41='server.0;{}' timeout 30 {} name",
                  BRANT_TEST_LAUNCHERS, uri, beside_this_test("boot_probe")));
  ::close(silent);
  EXPECT_EQ(outcome.exit_code, 65) << outcome.output;
  EXPECT_NE(outcome.output.find(uri), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("is stopped"), std::string::npos) << outcome.output;
}

/// Runs the probe with this environment and expects it to refuse, with these words.
void expect_refusal(const std::string& environment, const std::string& words) {
  const Outcome outcome =
      shell(fmt::format("env -u BRANT_BOOT_FD {} {} name", environment, beside_this_test("boot_probe")));
  EXPECT_EQ(outcome.exit_code, 65) << environment << ": " << outcome.output;
  EXPECT_NE(outcome.output.find(words), std::string::npos) << environment << ": " << outcome.output;
}

TEST(BootSelection, launchers_that_are_not_spoken_are_named_and_never_taken_for_jobs_of_one) {
  expect_refusal("SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2", "srun --mpi=pmix");
  expect_refusal("PMI_FD=333 PMI_RANK=0 PMI_SIZE=2", "PMI-1: PMI_FD=333 is no open socket");
  expect_refusal("PMI_PORT=host:5", "-pmi-port");
  expect_refusal("RANK=1 WORLD_SIZE=2", "torchrun");
  expect_refusal("OMPI_COMM_WORLD_SIZE=2", "Open MPI");
  const Outcome forced =
      shell(fmt::format("RANK=1 WORLD_SIZE=2 BRANT_BOOTSTRAP=single {} name", beside_this_test("boot_probe")));
  EXPECT_EQ(forced.exit_code, 0) << forced.output;
}

TEST(BootSelection, an_unknown_bootstrap_lists_the_known_ones) {
  expect_refusal("BRANT_BOOTSTRAP=mpi", "launcher (brant run), pmix");
}

TEST(BootSelection, a_launcher_socket_that_is_not_there_is_no_job_of_one) {
  expect_refusal("BRANT_BOOTSTRAP=launcher", "is no open socket");
  expect_refusal("BRANT_BOOT_FD=333 BRANT_RANK=0 BRANT_SIZE=1", "is no open socket");
  expect_refusal("BRANT_BOOT_FD=1 BRANT_RANK=0 BRANT_SIZE=1", "is no open socket");
  expect_refusal("BRANT_BOOT_FD=x", "is no open socket");
}

TEST(BootSelection, variables_that_contradict_the_launcher_are_refused) {
  const std::string run = fmt::format("{} run -n 2 --", beside_this_test("brant"));
  const std::string probe = beside_this_test("boot_probe");
  for (const char* wrong : {"BRANT_RANK=5", "BRANT_RANK=x", "BRANT_SIZE=0", "BRANT_SIZE=4096", "BRANT_LOCAL_RANK=2"}) {
    const Outcome outcome = shell(fmt::format("{} env {} {} name", run, wrong, probe));
    EXPECT_EQ(outcome.exit_code, 65) << wrong << ": " << outcome.output;
    EXPECT_NE(outcome.output.find("must not change it"), std::string::npos) << wrong << ": " << outcome.output;
  }
  const Outcome outcome = shell(fmt::format("{} env BRANT_JOB_ID=other {} name", run, probe));
  EXPECT_EQ(outcome.exit_code, 65) << outcome.output;
  EXPECT_NE(outcome.output.find("BRANT_JOB_ID say"), std::string::npos) << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(Launchers, BootTest,
                         testing::Values(Launch{Way::single, 1}, Launch{Way::launcher, 1}, Launch{Way::launcher, 2},
                                         Launch{Way::launcher, 5}, Launch{Way::torchrun, 2}, Launch{Way::torchrun, 3},
                                         Launch{Way::open_mpi_4, 3}, Launch{Way::open_mpi_5, 3}, Launch{Way::mpich, 2},
                                         Launch{Way::mpich, 5}),
                         launch_name);
INSTANTIATE_TEST_SUITE_P(Launchers, BootDeathTest,
                         testing::Values(Launch{Way::launcher, 2}, Launch{Way::launcher, 4}, Launch{Way::torchrun, 3},
                                         Launch{Way::open_mpi_4, 3}, Launch{Way::open_mpi_5, 3}),
                         launch_name);

}  // namespace
