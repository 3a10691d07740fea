#include <algorithm>
#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "bench/mpi/mpi_library.h"
#include "bench/rma/meeting.h"
#include "bench/rma/player.h"
#include "bench/rma/runner.h"
#include "bench/runner/us_since.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

using mpi::require;

/// Two processes of an MPI, from its init to its finalize.
class MpiJob final : public RmaMeeting {
 public:
  explicit MpiJob(const std::string& library) : mpi_(mpi::load(library)) {
    require(mpi_.init(nullptr, nullptr), "MPI_Init");
    int size = 0;
    require(mpi_.comm_rank(mpi_.world, &rank_), "MPI_Comm_rank");
    require(mpi_.comm_size(mpi_.world, &size), "MPI_Comm_size");
    if (size != 2)
      throw Error(Status::invalid_argument, fmt::format("bench rma takes 2 processes of MPI, not {}", size));
  }
  ~MpiJob() override { static_cast<void>(mpi_.finalize()); }

  [[nodiscard]] const mpi::Library& mpi() const noexcept { return mpi_; }
  [[nodiscard]] bool leads() const override { return rank_ == 0; }
  void barrier() override { require(mpi_.barrier(mpi_.world), "MPI_Barrier"); }
  void target_turns_away() override {
    char token = 0;
    mpi::StatusRoom status;
    if (leads()) {
      require(mpi_.recv(&token, 1, mpi_.byte_type, 1, 0, mpi_.world, &status), "MPI_Recv");
    } else {
      require(mpi_.send(&token, 1, mpi_.byte_type, 0, 0, mpi_.world), "MPI_Send");
    }
  }

 private:
  const mpi::Library mpi_;
  int rank_ = 0;
};

/// RMA of MPI in a window that it has allocated, inside one epoch of lock_all: puts or gets and a flush.
class MpiPlayer final : public RmaPlayer {
 public:
  MpiPlayer(const MpiJob& job, std::size_t bytes) : job_(job), mpi_(job.mpi()), private_(bytes) {
    void* base = nullptr;
    require(mpi_.win_allocate(static_cast<std::ptrdiff_t>(bytes), 1, mpi_.no_info, mpi_.world, &base, &window_),
            "MPI_Win_allocate");
    shared_ = static_cast<std::byte*>(base);
    std::fill_n(shared_, bytes, std::byte{});
    require(mpi_.win_lock_all(0, window_), "MPI_Win_lock_all");
  }
  ~MpiPlayer() override {
    static_cast<void>(mpi_.win_unlock_all(window_));
    static_cast<void>(mpi_.win_free(&window_));
  }

  [[nodiscard]] std::string peer() const override { return "mpi"; }
  [[nodiscard]] std::string peer_version() const override { return mpi_.version; }
  [[nodiscard]] std::string path() const override { return "mpi"; }
  [[nodiscard]] bool plays(const RmaCase& which) const override {
    return which.sync != RmaSync::notify && !which.pattern.needs_device();
  }
  void use(RmaPattern pattern) override { local_ = pattern.local == RmaMemory::private_ ? private_.data() : shared_; }

  void measure(const RmaCase& which, std::span<double> us) override {
    if (!job_.leads()) return;
    for (double& sample : us) sample = measure_one(which);
  }

 private:
  double measure_one(const RmaCase& which) {
    const int bytes = static_cast<int>(which.bytes);
    const Clock::time_point begin = Clock::now();
    for (std::size_t i = 0; i < which.window; ++i) {
      const int outcome = which.puts() ? mpi_.put(local_, bytes, mpi_.byte_type, 1, 0, bytes, mpi_.byte_type, window_)
                                       : mpi_.get(local_, bytes, mpi_.byte_type, 1, 0, bytes, mpi_.byte_type, window_);
      require(outcome, which.puts() ? "MPI_Put" : "MPI_Get");
    }
    const double posted_us = which.sync == RmaSync::inject ? us_since(begin) : 0;
    require(mpi_.win_flush(1, window_), "MPI_Win_flush");
    return which.sync == RmaSync::inject ? posted_us / static_cast<double>(which.window) : us_since(begin);
  }

  const MpiJob& job_;
  const mpi::Library& mpi_;
  std::vector<std::byte> private_;
  std::byte* shared_ = nullptr;
  std::byte* local_ = nullptr;
  mpi::Handle window_ = nullptr;
};

}  // namespace

void run_rma_of_mpi(const RmaBench& bench, const std::string& library) {
  MpiJob job(library);
  std::vector<RmaPattern> patterns = bench.patterns.empty() ? all_patterns() : bench.patterns;
  std::erase_if(patterns, [](RmaPattern each) { return each.needs_device(); });
  MpiPlayer player(job, bench.sizes.back());
  RmaRunner runner(bench, job, describe_machine(), MemoryKind::host);
  runner.print_title(job.mpi().version + ", MPI_Win_allocate and lock_all", patterns);
  runner.run({&player}, patterns);
}

}  // namespace brant::bench
