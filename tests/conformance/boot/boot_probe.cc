// One process of a job that boot_test.cc starts under each launcher. The first argument names the scenario; the process
// ends with 0 if it saw what the scenario promises, and says on standard error what it saw otherwise.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "port/boot/select.h"

namespace {

using namespace std::chrono_literals;
using brant::Status;
using brant::port::Boot;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kEnough = 20s;

[[noreturn]] void fail(const Boot& boot, const std::string& what) {
  fmt::print(stderr, "rank {} of {}: {}; last error: '{}'\n", boot.job().rank, boot.job().size, what,
             boot.last_error());
  std::fflush(stderr);
  // Like a crash, without finalize: the launcher must cope.
  ::_exit(1);
}

void expect(const Boot& boot, bool good, const std::string& what) {
  if (!good) fail(boot, what);
}

void expect_status(const Boot& boot, Status seen, Status wanted, const std::string& what) {
  if (seen != wanted) fail(boot, fmt::format("{} gave {} instead of {}", what, status_name(seen), status_name(wanted)));
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// Different in every rank and place, so that a mixed-up value is noticed.
std::vector<std::byte> pattern(int rank, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(rank) * 31 + i * 7 + (i >> 9));
  return bytes;
}

void ranks(Boot& boot) {
  const brant::port::JobInfo& job = boot.job();
  const char* size = std::getenv("PROBE_SIZE");
  expect(boot, size != nullptr && job.size == std::atoi(size), "the job has the wrong size");
  expect(boot, job.rank >= 0 && job.rank < job.size, "the rank is out of range");
  expect(boot, job.local_rank == job.rank && job.local_size == job.size, "all processes are on this host");
  expect(boot, !job.job_id.empty() && !job.launcher.empty(), "the job has no id or launcher");
  const auto records =
      brant::port::allgather(boot, "id", bytes_of(fmt::format("{}/{}", job.rank, job.job_id)), kEnough);
  for (int rank = 0; rank < job.size; ++rank) {
    expect(boot, records[static_cast<std::size_t>(rank)] == bytes_of(fmt::format("{}/{}", rank, job.job_id)),
           fmt::format("record of rank {}", rank));
  }
}

void rounds(Boot& boot) {
  const brant::port::JobInfo& job = boot.job();
  for (int round = 0; round < 20; ++round) {
    const std::string key = fmt::format("round.{}", round);
    const auto records = brant::port::allgather(boot, key, pattern(job.rank + round, 100), kEnough);
    for (int rank = 0; rank < job.size; ++rank) {
      expect(boot, records[static_cast<std::size_t>(rank)] == pattern(rank + round, 100),
             fmt::format("round {}, rank {}", round, rank));
    }
  }
  const auto first = boot.get(job.size - 1, "round.0");
  expect(boot, first.ok() && first.value() == pattern(job.size - 1, 100), "a value of an earlier fence is still there");
}

void big(Boot& boot) {
  const brant::port::JobInfo& job = boot.job();
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  expect_status(boot, boot.put("big", pattern(job.rank, kMiB)), Status::ok, "put of 1 MiB");
  expect_status(boot, boot.put("empty", {}), Status::ok, "put of nothing");
  expect_status(boot, boot.fence(kEnough), Status::ok, "fence");
  for (int rank = 0; rank < job.size; ++rank) {
    const auto value = boot.get(rank, "big");
    expect(boot, value.ok() && value.value() == pattern(rank, kMiB), fmt::format("1 MiB of rank {}", rank));
    const auto empty = boot.get(rank, "empty");
    expect(boot, empty.ok() && empty.value().empty(), fmt::format("the empty value of rank {}", rank));
  }
}

void missing(Boot& boot) {
  const brant::port::JobInfo& job = boot.job();
  const int other = (job.rank + 1) % job.size;
  if (job.rank == 0) expect_status(boot, boot.put("only.zero", bytes_of("x")), Status::ok, "put");
  expect_status(boot, boot.fence(kEnough), Status::ok, "fence");
  const Clock::time_point start = Clock::now();
  expect_status(boot, boot.get(other, "nobody.put.this").status(), Status::not_found, "get of a missing key");
  expect(boot, !boot.last_error().empty(), "no words for the missing key");
  expect(boot, boot.get(0, "only.zero").ok(), "the key that rank 0 put");
  if (job.size > 1)
    expect_status(boot, boot.get(job.size - 1, "only.zero").status(), Status::not_found, "get of another's key");
  expect(boot, Clock::now() - start < 5s, "a missing key made get wait");
  expect_status(boot, boot.fence(kEnough), Status::ok, "fence after misses");
}

void bad_input(Boot& boot) {
  expect_status(boot, boot.put("", bytes_of("x")), Status::invalid_argument, "put with an empty key");
  expect_status(boot, boot.put(std::string(65, 'k'), bytes_of("x")), Status::invalid_argument, "put with a long key");
  expect_status(boot, boot.put("a key", bytes_of("x")), Status::invalid_argument, "put with a blank in the key");
  expect_status(boot, boot.put("huge", pattern(0, (std::size_t{1} << 20) + 1)), Status::invalid_argument,
                "put of more than 1 MiB");
  expect(boot, boot.last_error().find("huge") != std::string::npos, "the error does not name the key");
  expect_status(boot, boot.put(std::string(64, 'k'), bytes_of("x")), Status::ok, "put with the longest key");
  expect_status(boot, boot.fence(kEnough), Status::ok, "fence");
  expect_status(boot, boot.get(boot.job().size, "x").status(), Status::invalid_argument,
                "get from a rank beyond the job");
  expect_status(boot, boot.get(-1, "x").status(), Status::invalid_argument, "get from rank -1");
  expect(boot, boot.get(0, std::string(64, 'k')).ok(), "the longest key");
}

void late(Boot& boot) {
  // Rank 0 comes late to the fence: the others see a time-out, try again, and then it works.
  if (boot.job().rank == 0) {
    std::this_thread::sleep_for(1s);
  } else {
    const Clock::time_point start = Clock::now();
    expect_status(boot, boot.fence(200ms), Status::timed_out, "fence without rank 0");
    const auto took = Clock::now() - start;
    expect(boot, took >= 200ms && took < 900ms, "the time-out came at the wrong time");
    // Others may have given up too and are missing then as well.
    expect(boot,
           boot.last_error().find("rank") != std::string::npos && boot.last_error().find(" 0") != std::string::npos,
           "the error does not say who is missing");
  }
  expect_status(boot, boot.fence(kEnough), Status::ok, "fence of all");
}

/// Slurm's server waits in a fence for a process that has ended, until the fence is given up, and so does the store of
/// torchrun.
bool server_tells_of_deaths() {
  if (std::getenv("TORCHELASTIC_RUN_ID") != nullptr) return false;
  return std::getenv("SLURM_STEP_ID") == nullptr || std::getenv("OMPI_COMM_WORLD_RANK") != nullptr;
}

void expect_lost(Boot& boot, const std::string& words) {
  const Clock::time_point start = Clock::now();
  if (server_tells_of_deaths()) {
    expect_status(boot, boot.fence(kEnough), Status::peer_lost, "fence with a dead peer");
    expect(boot, Clock::now() - start < 2s, "the death of a peer was noticed late");
  } else {
    const Status status = boot.fence(2s);
    expect(boot, status == Status::peer_lost || status == Status::timed_out, "a fence with a dead peer succeeded");
    expect(boot, boot.last_error().find("rank 1") != std::string::npos, "the error does not name the dead peer");
    return;
  }
  expect(boot, boot.last_error().find(words) != std::string::npos, fmt::format("the error does not say '{}'", words));
  expect_status(boot, boot.fence(kEnough), Status::peer_lost, "another fence with a dead peer");
}

void killed(Boot& boot) {
  if (boot.job().rank == 1) {
    std::this_thread::sleep_for(300ms);
    ::raise(SIGKILL);
  }
  expect_lost(boot, "rank 1 ");
  if (boot.job().launcher != "brant run") return;
  expect(boot, boot.last_error().find("signal 9") != std::string::npos, "the error does not name the signal");
}

void quits(Boot& boot) {
  if (boot.job().rank == 1) ::_exit(0);  // well, but without finalize
  expect_lost(boot, boot.job().launcher == "brant run" ? "ended with exit code 0" : "rank 1 ");
}

void leaves(Boot& boot) {
  // Rank 1 ends as it should, but the others wait for it in a fence that it never meant to join.
  if (boot.job().rank == 1) return;
  if (boot.job().launcher == "brant run") return expect_lost(boot, "rank 1 ");
  // Some PMIx servers do not tell a process that has left from one that is late.
  const Status status = boot.fence(2s);
  expect(boot, status == Status::peer_lost || status == Status::timed_out, "a fence without all succeeded");
}

void overwrites(Boot& boot) {
  // The last value put before a fence is the one that is read after it.
  const brant::port::JobInfo& job = boot.job();
  for (int round = 0; round < 5; ++round) {
    expect_status(boot, boot.put("same", pattern(99, 10)), Status::ok, "put");
    const auto records =
        brant::port::allgather(boot, "same", pattern(job.rank + round, 50 + static_cast<std::size_t>(round)), kEnough);
    for (int rank = 0; rank < job.size; ++rank) {
      expect(boot,
             records[static_cast<std::size_t>(rank)] == pattern(rank + round, 50 + static_cast<std::size_t>(round)),
             fmt::format("round {}, rank {} is not the new value", round, rank));
    }
    // Nobody may put the next value while another still reads this one.
    expect_status(boot, boot.fence(kEnough), Status::ok, "fence");
  }
}

void abandons(Boot& boot) {
  // A fence that was given up must not keep the process from ending.
  if (boot.job().rank != 0) expect_status(boot, boot.fence(100ms), Status::timed_out, "fence without rank 0");
  std::this_thread::sleep_for(500ms);
}

void aborts(Boot& boot) {
  if (boot.job().rank == boot.job().size - 1) boot.abort(42, "the answer was found");
  std::this_thread::sleep_for(60s);
}

const std::map<std::string, std::function<void(Boot&)>> kScenarios{
    {"ranks", ranks},           {"rounds", rounds},       {"big", big},
    {"missing", missing},       {"bad_input", bad_input}, {"late", late},
    {"overwrites", overwrites}, {"abandons", abandons},   {"killed", killed},
    {"quits", quits},           {"leaves", leaves},       {"aborts", aborts},
};

/// Bootstrap twice in one process, as a test program with several runtimes does.
void reopens() {
  for (int turn = 0; turn < 3; ++turn) {
    const auto boot = brant::port::make_boot();
    try {
      const auto second = brant::port::make_boot();
      if (boot->job().launcher != "single") fail(*boot, "a second bootstrap opened beside the first");
    } catch (const brant::Error& error) {
      expect_status(*boot, error.status(), Status::limit_reached, "a second bootstrap");
    }
    ranks(*boot);
    boot->finalize();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  try {
    if (scenario == "reopens") {
      reopens();
      return 0;
    }
    const auto boot = brant::port::make_boot();
    if (scenario == "name") {
      fmt::print("bootstrap={} rank={} size={}\n", boot->job().launcher, boot->job().rank, boot->job().size);
    } else {
      kScenarios.at(scenario)(*boot);
    }
    boot->finalize();
    return 0;
  } catch (const std::out_of_range&) {
    fmt::print(stderr, "no scenario '{}'\n", scenario);
    return 64;
  } catch (const brant::Error& error) {
    fmt::print(stderr, "Error {}: {}\n", status_name(error.status()), error.what());
    return 65;
  }
}
