// What kernels do with bells, its own source, under every schedule with a few deviations and many by chance: what was
// written before a ring is there for whoever sees it. And faults put in are found.
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/device/put.cuh"
#include "support/effort.h"
#include "support/model/explore.h"
#include "support/model/stepped_thread.h"

namespace brant::test {
namespace {

using model::Scheduler;
using notify::DeviceBell;
using notify::FanIn;
using notify::KernelControl;
using notify::Waited;

struct Faults {
  bool relaxed_ring = false;    ///< The epoch does not come behind the bytes.
  bool relaxed_fan_in = false;  ///< An arrival does not come behind its bytes.
  bool split_fan_in = false;    ///< The count is read and written, and not added to.
  bool narrow_ring = false;     ///< The fence before the epoch is one of the device, and not of the system.
  bool torn_line = false;       ///< A line is two stores, which keep no order.
};

class ModelBlock : public model::SteppedThread {
 public:
  ModelBlock(Scheduler& scheduler, std::uint64_t& clock_ns, const Faults& faults)
      : SteppedThread(scheduler, clock_ns), faults_(faults) {}

  // NOLINTBEGIN(bugprone-derived-method-shadowing-base-method)
  void store_release(std::uint64_t* to, std::uint64_t value) {
    if (!faults_.relaxed_ring && !faults_.narrow_ring) return SteppedThread::store_release(to, value);
    if (faults_.narrow_ring) scheduler_.fence_near();
    store_relaxed(to, value);
  }
  void store_line(std::uint64_t* to, simt::Pair pair) {
    if (!faults_.torn_line) return SteppedThread::store_line(to, pair);
    store_relaxed(to, pair.first);
    store_relaxed(to + 1, pair.second);
  }
  std::uint64_t add_acq_rel_device(std::uint64_t* to, std::uint64_t value) {
    if (faults_.relaxed_fan_in) return add_device(to, value);
    if (!faults_.split_fan_in) return SteppedThread::add_acq_rel_device(to, value);
    fence_device();
    const std::uint64_t before = load_relaxed(to);
    store_relaxed(to, before + value);
    fence_device();
    return before;
  }
  // NOLINTEND(bugprone-derived-method-shadowing-base-method)

 private:
  const Faults& faults_;
};

/// So many blocks write a word each for every epoch, and arrive; two of them without an answer in between. Another
/// thread, beyond the bus, waits for each epoch.
class World {
 public:
  World(Scheduler& scheduler, unsigned blocks, std::uint64_t epochs, Faults faults)
      : scheduler_(scheduler), blocks_(blocks), epochs_(epochs), faults_(faults) {
    scheduler_.far_threads = 1;
    scheduler_.on_stuck = nullptr;
  }

  std::vector<std::function<void()>> make() {
    bell_ = counts_ = 0;
    written_ = {};
    seen_ = 0;
    std::vector<std::function<void()>> threads{[this] { look(); }};
    for (unsigned block = 0; block < blocks_; ++block) threads.push_back([this, block] { write(block); });
    return threads;
  }
  void check() {
    if (seen_ != epochs_) wrong = "not all epochs came";
    if (bell_ != epochs_) wrong = "the bell went back";
  }
  std::string wrong;

 private:
  static constexpr unsigned kBlocksMax = 3;

  void write(unsigned block) {
    ModelBlock machine(scheduler_, clock_ns_, faults_);
    for (std::uint64_t epoch = 1; epoch <= epochs_; ++epoch) {
      machine.store_relaxed(&written_[epoch][block], 100 * epoch + block);
      if (blocks_ == 1 && epoch % 2 == 0) {
        notify::arrive(machine, DeviceBell{&bell_, 0}, FanIn{}, epoch, notify::Block{});
      } else if (blocks_ == 1) {
        notify::ring(machine, DeviceBell{&bell_, 0}, epoch, notify::Block{});
      } else {
        notify::arrive(machine, DeviceBell{&bell_, 0}, FanIn{&counts_, blocks_}, epoch, notify::Block{});
      }
    }
    static_cast<void>(machine.load_acquire(&bell_));  // it does not end with its last store
  }
  void look() {
    ModelBlock machine(scheduler_, clock_ns_, faults_);
    for (std::uint64_t epoch = 1; epoch <= epochs_; ++epoch) {
      const Waited waited = notify::wait(machine, KernelControl{}, DeviceBell{&bell_, 0}, epoch, notify::Block{});
      scheduler_.expect(waited == Waited::rung, "a wait without a limit ended");
      for (unsigned block = 0; block < blocks_; ++block) {
        scheduler_.expect(machine.load_relaxed(&written_[epoch][block]) == 100 * epoch + block,
                          "the epoch came before the bytes");
      }
      seen_ = epoch;
    }
  }

  Scheduler& scheduler_;
  const unsigned blocks_;
  const std::uint64_t epochs_;
  const Faults faults_;
  std::uint64_t bell_ = 0;
  std::uint64_t counts_ = 0;
  std::array<std::array<std::uint64_t, kBlocksMax>, 4> written_{};
  std::uint64_t clock_ns_ = 0;
  std::uint64_t seen_ = 0;
};

/// A thread sends lines of two words, epoch by epoch; another one, beyond the bus, takes them, and says so by a ring
/// that tells of nothing else.
class WorldOfLines {
 public:
  WorldOfLines(Scheduler& scheduler, std::uint64_t epochs, Faults faults)
      : scheduler_(scheduler), epochs_(epochs), faults_(faults) {
    scheduler_.far_threads = 1;
    scheduler_.on_stuck = nullptr;
  }

  std::vector<std::function<void()>> make() {
    lines_ = {};
    taken_ = seen_ = 0;
    return {[this] { take(); }, [this] { send(); }};
  }
  void check() {
    if (seen_ != epochs_) wrong = "not all epochs came";
  }
  std::string wrong;

 private:
  void send() {
    ModelBlock machine(scheduler_, clock_ns_, faults_);
    for (std::uint64_t epoch = 1; epoch <= epochs_; ++epoch) {
      notify::wait(machine, KernelControl{}, DeviceBell{&taken_, 0}, epoch - 1, notify::Thread{});
      const std::array<std::uint64_t, 2> words = {10 * epoch, 10 * epoch + 1};
      notify::put_lines(machine, lines_.data(), epoch, words.data(), words.size(), notify::Warp{});
    }
    static_cast<void>(machine.load_acquire(&taken_));  // it does not end with its last store
  }
  void take() {
    ModelBlock machine(scheduler_, clock_ns_, faults_);
    for (std::uint64_t epoch = 1; epoch <= epochs_; ++epoch) {
      const Waited waited = notify::take_lines(machine, KernelControl{}, lines_.data(), epoch, got_.data(), got_.size(),
                                               0, notify::Warp{});
      scheduler_.expect(waited == Waited::rung, "a wait without a limit ended");
      for (std::uint64_t i = 0; i < got_.size(); ++i) {
        scheduler_.expect(machine.load_relaxed(&got_[i]) == 10 * epoch + i, "the epoch came before its word");
      }
      seen_ = epoch;
      notify::ring_relaxed(machine, DeviceBell{&taken_, 0}, epoch);
    }
  }

  Scheduler& scheduler_;
  const std::uint64_t epochs_;
  const Faults faults_;
  std::array<notify::Line, 2> lines_{};
  std::array<std::uint64_t, 2> got_{};
  std::uint64_t taken_ = 0;
  std::uint64_t clock_ns_ = 0;
  std::uint64_t seen_ = 0;
};

/// Blocks of one grid write a word each, meet, and read what all have written, in one place behind another.
class WorldOfMeetings {
 public:
  WorldOfMeetings(Scheduler& scheduler, unsigned blocks, Faults faults)
      : scheduler_(scheduler), blocks_(blocks), faults_(faults) {
    scheduler_.on_stuck = nullptr;
  }

  std::vector<std::function<void()>> make() {
    bell_ = counts_ = passed_ = 0;
    written_ = {};
    std::vector<std::function<void()>> threads;
    for (unsigned block = 0; block < blocks_; ++block) threads.push_back([this, block] { go(block); });
    return threads;
  }
  void check() {
    if (passed_ != blocks_) wrong = "not all blocks have come to the end";
  }
  std::string wrong;

 private:
  static constexpr unsigned kBlocksMax = 3;
  static constexpr std::uint64_t kPlaces = 3;

  /// A place of its own for what is told here and for the answer: whoever has passed may write again.
  void go(unsigned block) {
    MeetingBlock machine(scheduler_, clock_ns_, faults_, blocks_);
    for (std::uint64_t place = 1; place <= kPlaces; ++place) {
      machine.store_relaxed(&written_[place % 2][block], 100 * place + block);
      const Waited waited =
          notify::meet(machine, KernelControl{}, DeviceBell{&bell_, 0}, FanIn{&counts_, blocks_}, place);
      scheduler_.expect(waited == Waited::rung, "a meeting without a limit ended");
      for (unsigned other = 0; other < blocks_; ++other) {
        scheduler_.expect(machine.load_relaxed(&written_[place % 2][other]) == 100 * place + other,
                          "a block has passed before another one's bytes were there");
      }
    }
    ++passed_;
  }

  class MeetingBlock : public ModelBlock {
   public:
    MeetingBlock(Scheduler& scheduler, std::uint64_t& clock_ns, const Faults& faults, unsigned blocks)
        : ModelBlock(scheduler, clock_ns, faults), blocks_(blocks) {}
    [[nodiscard]] unsigned blocks() const { return blocks_; }  // NOLINT(bugprone-derived-method-shadowing-base-method)

   private:
    const unsigned blocks_;
  };

  Scheduler& scheduler_;
  const unsigned blocks_;
  const Faults faults_;
  std::uint64_t bell_ = 0;
  std::uint64_t counts_ = 0;
  std::array<std::array<std::uint64_t, kBlocksMax>, 2> written_{};
  std::uint64_t clock_ns_ = 0;
  unsigned passed_ = 0;
};

class NotifyModel : public testing::Test {
 protected:
  void SetUp() override {
    if (test::kSanitized) GTEST_SKIP() << "sanitizers do not follow the scheduler's stacks; the other builds run this";
  }
};
class NotifyModelFaults : public NotifyModel {};

std::string explore(unsigned blocks, std::uint64_t epochs, Faults faults = {}) {
  return model::explore([&](Scheduler& scheduler) { return World(scheduler, blocks, epochs, faults); });
}

std::string explore_lines(std::uint64_t epochs, Faults faults = {}) {
  return model::explore([&](Scheduler& scheduler) { return WorldOfLines(scheduler, epochs, faults); });
}

std::string explore_meetings(unsigned blocks, Faults faults = {}) {
  return model::explore([&](Scheduler& scheduler) { return WorldOfMeetings(scheduler, blocks, faults); });
}

TEST_F(NotifyModel, a_ring_comes_behind_the_bytes) { EXPECT_EQ(explore(1, 2), ""); }
TEST_F(NotifyModel, the_last_of_two_blocks_rings_for_both) { EXPECT_EQ(explore(2, 1), ""); }
TEST_F(NotifyModel, the_last_of_three_blocks_rings_for_all) { EXPECT_EQ(explore(3, 1), ""); }
TEST_F(NotifyModel, blocks_may_be_two_epochs_ahead_of_others) { EXPECT_EQ(explore(2, 3), ""); }

TEST_F(NotifyModel, a_line_brings_the_word_of_its_epoch) { EXPECT_EQ(explore_lines(2), ""); }

TEST_F(NotifyModel, two_blocks_that_have_met_see_what_both_have_written) { EXPECT_EQ(explore_meetings(2), ""); }
TEST_F(NotifyModel, three_blocks_that_have_met_see_what_all_have_written) { EXPECT_EQ(explore_meetings(3), ""); }

TEST_F(NotifyModelFaults, a_relaxed_ring_is_found) {
  EXPECT_EQ(explore(1, 1, {.relaxed_ring = true}), "the epoch came before the bytes");
  EXPECT_EQ(explore(2, 1, {.relaxed_ring = true}), "the epoch came before the bytes");
}
TEST_F(NotifyModelFaults, a_fence_that_does_not_reach_across_the_bus_is_found) {
  EXPECT_EQ(explore(1, 1, {.narrow_ring = true}), "the epoch came before the bytes");
  EXPECT_EQ(explore(2, 1, {.narrow_ring = true}), "the epoch came before the bytes");
}
TEST_F(NotifyModelFaults, a_line_of_two_accesses_is_found) {
  EXPECT_EQ(explore_lines(1, {.torn_line = true}), "the epoch came before its word");
}
TEST_F(NotifyModelFaults, a_relaxed_fan_in_is_found) {
  EXPECT_EQ(explore(2, 1, {.relaxed_fan_in = true}), "the epoch came before the bytes");
}
TEST_F(NotifyModelFaults, a_relaxed_arrival_at_a_meeting_is_found) {
  EXPECT_NE(explore_meetings(2, {.relaxed_fan_in = true}), "");
}
TEST_F(NotifyModelFaults, a_count_that_is_no_atomic_is_found) { EXPECT_NE(explore(2, 1, {.split_fan_in = true}), ""); }

}  // namespace
}  // namespace brant::test
