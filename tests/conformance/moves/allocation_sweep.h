#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "ops/channel/table.h"
#include "ops/mover/mover.h"
#include "support/faulty_device.h"
#include "support/grounds.h"
#include "support/in_process_job.h"
#include "support/scarce_memory.h"

/// What every operation owes to whoever waits for it when an allocation fails, whichever it is.
namespace brant::test {

using Fails = ScarceMemory::Fails;

/// Plays `scene(nth)` for nth = 1, 2 ...; it makes that allocation fail, and says whether it came to it. Ends with the
/// first that did not, or that failed the test.
template <typename Scene>
void sweep_allocations(Scene&& scene) {
  constexpr unsigned kMost = 3000;
  for (unsigned nth = 1; nth < kMost; ++nth) {
    SCOPED_TRACE(testing::Message() << "allocation " << nth << " fails");
    const bool failed = scene(nth);
    if (!failed || testing::Test::HasFailure()) return;
  }
  ADD_FAILURE() << "never runs through";
}

/// An operation that ran out of memory, or whose other end did, says this.
inline bool tells_of_memory(Status status) noexcept {
  return status == Status::no_memory || status == Status::peer_rejected || status == Status::peer_lost;
}

/// An operation, and how often it ended.
struct Told {
  /// `post(Op&)` starts it.
  template <typename Post>
  void start(Moment moment, Post&& post) noexcept {
    const Completion sink{[](void* self, const OpResult& result) noexcept {
                            auto& told = *static_cast<Told*>(self);
                            ++told.times;
                            told.note(result.status);
                          },
                          this};
    (moment == Moment::source_free ? op.source_free : op.delivered) = sink;
    note(post(op));
    times = status == Status::in_progress ? 0 : 1;
  }
  void note(Status now) noexcept {
    status = now;
    refused = status == Status::no_memory && op.result.bytes == 0;
  }
  [[nodiscard]] bool ended() const noexcept { return times != 0; }

  Op op;
  Status status = Status::in_progress;
  bool refused = false;  ///< As if it had never been posted: the message, if any, is the next one's.
  int times = 0;
};

/// Ranks whose devices, if any, allocate from the memory that is scarce, and are watched for what they do not give
/// back.
class ScarceJob {
 public:
  explicit ScarceJob(JobOptions options) : ranks_(options.ranks) {
    if (options.gpu != GpuChoice::none) {
      options.wrap_device = [this](int rank, std::unique_ptr<port::Device> device) {
        DeviceFaults& faults = faults_[static_cast<std::size_t>(rank)];
        faults.scarce = &ScarceMemory::refuses;
        return make_faulty(std::move(device), faults);
      };
    }
    job_ = std::make_unique<InProcessJob>(options);
  }
  ~ScarceJob() {
    job_.reset();
    for (const DeviceFaults& faults : faults_) {
      EXPECT_EQ(faults.allocated, 0u) << "device memory was not given back";
      EXPECT_EQ(faults.imported, faults.closed) << "memory of others is still mapped";
    }
  }
  ScarceJob(const ScarceJob&) = delete;
  ScarceJob& operator=(const ScarceJob&) = delete;

  InProcessJob& operator*() noexcept { return *job_; }
  InProcessJob* operator->() noexcept { return job_.get(); }

  /// False after some seconds: it never comes.
  bool run_until(const std::function<bool()>& done) {
    constexpr auto kPatience = std::chrono::seconds(5);
    for (const TimePoint begin = Clock::now(); Clock::now() - begin < kPatience;) {
      for (int rank = 0; rank < ranks_; ++rank) engine(rank).deferrals().run_if_safe();  // as waits do
      for (int round = 0; round < 100; ++round) {
        if (done()) return true;
        job_->run(1);
      }
    }
    return done();
  }
  [[nodiscard]] Engine& engine(int rank) { return job_->rank(rank).worker().engine(); }
  /// Whether one of two ranks has given the other up.
  [[nodiscard]] bool parted() {
    if (ranks_ == 1) return false;
    return engine(0).peers().any_lost() || engine(1).peers().any_lost();
  }
  /// As if the process had ended that has given its peer up, or that its peer has: the other one hears of it.
  void part_wholly() {
    for (const int rank : {0, 1}) {
      Engine& one = engine(rank);
      Peer& other = one.peers()[1 - rank];
      if (!other.lost) one.peers().suspect(other);
    }
    job_->run(5);
  }
  /// No record of an operation is left.
  void expect_nothing_left() {
    for (int rank = 0; rank < ranks_; ++rank) {
      ChannelPools& pools = engine(rank).service<ChannelTable>().pools();
      EXPECT_TRUE(run_until([&] { return pools.live() == 0 && engine(rank).completions().pending() == 0; }))
          << "rank " << rank << " has " << pools.live() << " records, " << engine(rank).completions().pending()
          << " operations";
      EXPECT_EQ(pools.moves.lent(), 0u);
      EXPECT_EQ(pools.shapes.lent(), 0u);
      EXPECT_EQ(pools.arrivals.lent(), 0u);
    }
  }

 private:
  const int ranks_;
  std::array<DeviceFaults, 2> faults_;
  std::unique_ptr<InProcessJob> job_;
};

}  // namespace brant::test
