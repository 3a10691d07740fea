#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "brant/core/operation.h"
#include "brant/core/runtime.h"
#include "port/adapters.h"
#include "port/memory.h"
#include "port/wire/loopback/loopback.h"
#include "support/emulated_taking_wire.h"

namespace brant::test {

/// The bootstrap of several runtimes that live in one thread: a shared map, and fences that never wait.
/// `fence`, if any, says what becomes of them.
class SharedBoot final : public port::Boot {
 public:
  using Values = std::map<std::pair<int, std::string>, std::vector<std::byte>>;

  SharedBoot(std::shared_ptr<Values> values, int rank, int size, std::function<Status()> fence = {})
      : values_(std::move(values)), fence_(std::move(fence)) {
    job_.rank = job_.local_rank = rank;
    job_.size = job_.local_size = size;
    job_.job_id = "in-process";
    job_.launcher = "test";
  }
  const port::JobInfo& job() const noexcept override { return job_; }
  Status put(const std::string& key, std::span<const std::byte> value) noexcept override {
    (*values_)[{job_.rank, key}].assign(value.begin(), value.end());
    return Status::ok;
  }
  Status fence(std::chrono::milliseconds) noexcept override { return fence_ ? fence_() : Status::ok; }
  Result<std::vector<std::byte>> get(int rank, const std::string& key) noexcept override {
    const auto found = values_->find({rank, key});
    if (found == values_->end()) return Status::not_found;
    return found->second;
  }
  std::string last_error() const override { return {}; }
  void finalize() noexcept override {}
  void abort(int, const std::string&) noexcept override {}

 private:
  std::shared_ptr<Values> values_;
  std::function<Status()> fence_;
  port::JobInfo job_;
};

/// Small messages between emulated devices that map each other: the devices copy, or their couriers, which they have on
/// demand.
inline Path small_mapped_path() { return env_bool("BRANT_COURIER", false) ? Path::courier : Path::copy_engine; }

struct JobOptions {
  int ranks = 2;
  GpuChoice gpu = GpuChoice::none;  ///< none, emulated, or cuda: one GPU for all ranks.
  port::LoopbackOptions network;
  RuntimeOptions runtime;
  /// The ranks share memory, as the processes of one host do. By default as the test program was told: the same tests
  /// run with and without (BRANT_TEST_LINKS=1).
  bool links = env_bool("BRANT_TEST_LINKS", false);
  bool network_takes_device = false;  ///< As UCX takes GPU memory; for the emulated device.
  DeviceMemoryTaken device_memory_taken;
  /// Which exported device memory the other ranks can map; empty: all. None is as without a path between two GPUs.
  std::function<bool(const port::ExportRecord&)> mappable;
  /// Which device memory can be exported at all; empty: all. None is as with memory of CUDA's pools.
  std::function<bool(const port::PointerInfo&)> exportable;
  /// Emulated devices whose memory is shared as files alone, as that of CUDA's pools.
  bool files_only = false;
  /// Wraps a rank's wire, for faults; then there are no links, past which the faults would go unnoticed.
  std::function<std::unique_ptr<port::Wire>(int rank, std::unique_ptr<port::Wire>)> wrap;
  /// What becomes of a fence; empty: all come to it at once.
  std::function<Status()> fence;
  /// Wraps a rank's device, for faults.
  std::function<std::unique_ptr<port::Device>(int rank, std::unique_ptr<port::Device>)> wrap_device;
};

/// So many ranks, and nothing else out of the ordinary.
inline JobOptions ranks(int count, GpuChoice gpu = GpuChoice::none) {
  JobOptions options;
  options.ranks = count;
  options.gpu = gpu;
  return options;
}

/// Several ranks in one thread over a loopback network: every interleaving is the test's own choice.
class InProcessJob {
 public:
  explicit InProcessJob(const JobOptions& options = {});
  ~InProcessJob();

  [[nodiscard]] Runtime& rank(int rank) { return *runtimes_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] port::LoopbackNetwork& network() { return network_; }

  /// Lets every rank make progress until `done` holds. False after half a minute: emulated devices copy in threads of
  /// their own, which on a busy machine take time and not rounds.
  bool run_until(const std::function<bool()>& done);
  /// What became of an operation; one that does not complete fails the test, and timed out.
  OpResult outcome(const Operation& operation);
  /// Lets every rank make progress `rounds` times.
  void run(int rounds);

 private:
  port::LoopbackNetwork network_;
  std::vector<std::unique_ptr<Runtime>> runtimes_;
};

}  // namespace brant::test
