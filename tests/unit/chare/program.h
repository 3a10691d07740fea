#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/chare.h"
#include "port/wire/faulty/faulty.h"
#include "support/effort.h"
#include "support/in_process_job.h"

namespace brant::test {

/// A chare program whose ranks live in one thread: every round gives each rank one step.
class Program {
 public:
  explicit Program(const JobOptions& options = {}, ChareOptions chares = {}) : job_(options) {
    chares.connect = false;
    for (int rank = 0; rank < options.ranks; ++rank) {
      ranks_.push_back(std::make_unique<Chares>(job_.rank(rank), chares));
    }
    for (auto& rank : ranks_) rank->connect();
  }

  /// Runs `main(chares)` on rank 0 until every rank has ended. Returns rank 0's code, or -1 if it never ended.
  template <typename Main, typename... Args>
  int run(Main main, Args... args) {
    ranks_[0]->start(main(*ranks_[0], std::move(args)...));
    return run_on();
  }
  int run_on(int rounds = 1'000'000) {
    unsigned idle_rounds = 0;
    for (int round = 0; round < rounds; ++round) {
      bool all = true;
      unsigned events = 0;
      for (auto& rank : ranks_) {
        events += rank->progress();
        all = all && rank->ended();
      }
      if (all) return ranks_[0]->exit_code();
      // The emulated device has threads of its own. Not every time: beside other busy processes a yield may take as
      // long as their share of the core, and simulated networks are idle for thousands of rounds.
      idle_rounds = events == 0 ? idle_rounds + 1 : 0;
      if (idle_rounds % kIdleRoundsPerYield == kIdleRoundsPerYield - 1) std::this_thread::yield();
    }
    return -1;
  }
  [[nodiscard]] Chares& rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  /// What the ranks say went wrong, together: there must be one text.
  [[nodiscard]] std::string failure() const {
    std::string text;
    for (const auto& rank : ranks_) text += rank->failure();
    return text;
  }

 private:
  static constexpr unsigned kIdleRoundsPerYield = 16;

  InProcessJob job_;
  std::vector<std::unique_ptr<Chares>> ranks_;
};

/// Messages of different senders overtake each other, and take their time.
inline JobOptions reordering(std::uint64_t seed, int count = 3) {
  JobOptions options = ranks(count);
  options.network.seed = seed;
  options.network.delay_max = 5;
  options.network.shuffle_pairs = true;
  options.network.shuffle_tags = true;
  return options;
}

inline JobOptions with(JobOptions options, bool links, GpuChoice gpu, bool network_takes_device) {
  options.links = links;
  options.gpu = gpu;
  options.network_takes_device = network_takes_device;
  return options;
}

/// Host memory, a device that the network takes, and one that it does not; with links as `base` says, and thus once
/// without and once with them (BRANT_TEST_LINKS).
inline std::vector<JobOptions> variants(const JobOptions& base) {
  std::vector<JobOptions> all;
  all.push_back(with(base, base.links, GpuChoice::none, false));
  all.push_back(with(base, base.links, GpuChoice::emulated, false));
  all.push_back(with(base, base.links, GpuChoice::emulated, true));
  return all;
}

/// Reordering, over a wire that repeats messages, refuses some posts and reports late.
inline JobOptions faulty(std::uint64_t seed, int count = 3) {
  JobOptions options = reordering(seed, count);
  options.wrap = [seed](int rank, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
    port::FaultPolicy policy;
    policy.seed = seed * 16 + static_cast<std::uint64_t>(rank);
    policy.repeat_rate = 0.2;
    policy.completion_delay = 3;
    policy.rules = {{.point = port::FaultPoint::am_send,
                     .effect = port::FaultEffect::refuse,
                     .rate = 0.2,
                     .status = Status::limit_reached}};
    return std::make_unique<port::FaultyWire>(std::move(wire), policy);
  };
  return options;
}

}  // namespace brant::test
