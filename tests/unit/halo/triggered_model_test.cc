// Exchanges of a kernel that packs and unpacks beside a CPU that moves its messages, its own source, under every
// schedule with a few deviations and many by chance: each takes the cells that the neighbour packed for it, out of
// buffers that are used again and again. And faults put in are found.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/halo/triggered_steps.cuh"
#include "support/effort.h"
#include "support/model/explore.h"
#include "support/model/grid_block.h"
#include "support/model/stepped_thread.h"

namespace brant::halo {
namespace {

using test::model::GridBlock;
using test::model::Scheduler;
using test::model::SteppedThread;

constexpr unsigned kCells = 2;

struct Faults {
  bool packs_unasked = false;     ///< The kernel does not ask whether its messages have gone.
  bool receives_unasked = false;  ///< The CPU does not ask whether what came was taken.
  bool no_fan_in = false;         ///< The first block that has packed rings.
};

/// Two processes, each with a kernel, and a CPU that moves its message of two cells to the other.
class World {
 public:
  World(Scheduler& scheduler, unsigned blocks, Word times, Faults faults)
      : scheduler_(scheduler), blocks_(blocks), times_(times), faults_(faults) {
    scheduler_.on_stuck = nullptr;
  }

  std::vector<std::function<void()>> make() {
    for (unsigned p = 0; p < 2; ++p) connect(sides_[p] = Side{});
    std::vector<std::function<void()>> threads;
    for (unsigned p = 0; p < 2; ++p) {
      for (unsigned block = 0; block < blocks_; ++block) threads.emplace_back([this, p, block] { kernel(p, block); });
      threads.emplace_back([this, p] { move_messages(sides_[p], sides_[1 - p]); });
    }
    return threads;
  }
  void check() {}
  std::string wrong;

 private:
  struct Side {
    std::array<Word, kCells> send_buffer{};
    std::array<Word, kCells> receive_buffer{};
    Word packed = 0;
    Word came = 0;
    Word passed_on = 0;
    Word taken = 0;
    Word sent = 0;
    Word place = 0;
    Word counts = 0;
    Word arrivals = 0;
    TriggeredMessage out;
    TriggeredMessage in;
    TriggeredNeighbour neighbour;
    MessagePlan plan;
  };

  void connect(Side& side) const {
    side.out.last = side.in.last = kCells;
    side.out.packed = {&side.packed};
    side.out.fan_in = {&side.counts, faults_.no_fan_in ? 1 : Word{blocks_}};
    side.neighbour = {{&side.came}, &side.passed_on, 1};
    side.plan.packs.messages = &side.out;
    side.plan.unpacks.messages = &side.in;
    side.plan.unpacks.neighbours = &side.neighbour;
    side.plan.unpacks.neighbour_count = 1;
    side.plan.packs.count = side.plan.unpacks.count = 1;
    side.plan.packs.together = side.plan.unpacks.together = 1;
    side.plan.taken = {&side.taken};
    side.plan.sent = {&side.sent};
  }

  static Word content(unsigned process, Word epoch, Word cell) { return 1000 * (process + 1) + 10 * epoch + cell; }

  bool meet(GridBlock& machine, Side& side, Word place) const {
    const notify::DeviceBell bell{&side.place};
    notify::arrive(machine, bell, {&side.arrivals, blocks_}, place);
    return notify::wait(machine, notify::KernelControl{}, bell, place) == notify::Waited::rung;
  }

  void kernel(unsigned process, unsigned block) {
    GridBlock machine(scheduler_, clock_ns_, block, blocks_);
    Side& side = sides_[process];
    const notify::KernelControl control;
    for (Word epoch = 1; epoch <= times_; ++epoch) {
      pack_messages(machine, side.plan.packs, epoch, [&](const CopyRange& range, Share share) {
        for (Word cell = range.first + share.part; cell < range.last; cell += share.parts)
          machine.store_relaxed(&side.send_buffer[cell], content(process, epoch, cell));
      });
      const auto take = [&](const CopyRange& range, Share share) {
        for (Word cell = range.first + share.part; cell < range.last; cell += share.parts) {
          const Word seen = machine.load_relaxed(&side.receive_buffer[cell]);
          scheduler_.expect(seen == content(1 - process, epoch, cell), "an exchange took another one's cells");
        }
      };
      bool done = unpack_messages(machine, control, side.plan.unpacks, epoch, take);
      done = done && meet(machine, side, 2 * epoch - 1);
      tell_taken(machine, side.plan, epoch);
      if (!faults_.packs_unasked) done = done && await_sent(machine, control, side.plan, epoch);
      scheduler_.expect(done && meet(machine, side, 2 * epoch), "an exchange without a limit ended");
    }
    static_cast<void>(machine.load_acquire(&side.taken));  // it does not end with its last store
  }

  void await(SteppedThread& cpu, const Word& bell, Word epoch) const {
    while (!notify::reached(cpu.load_acquire(&bell), epoch)) scheduler_.pause();
  }

  /// What the CPUs of both do for the messages of one of them.
  void move_messages(Side& from, Side& to) {
    SteppedThread cpu(scheduler_, clock_ns_);
    for (Word epoch = 1; epoch <= times_; ++epoch) {
      if (!faults_.receives_unasked) await(cpu, to.taken, epoch - 1);
      await(cpu, from.packed, epoch);
      for (unsigned cell = 0; cell < kCells; ++cell)
        cpu.store_relaxed(&to.receive_buffer[cell], cpu.load_relaxed(&from.send_buffer[cell]));
      cpu.store_release(&to.came, epoch);
      cpu.store_release(&from.sent, epoch);
    }
    static_cast<void>(cpu.load_acquire(&from.packed));
  }

  Scheduler& scheduler_;
  const unsigned blocks_;
  const Word times_;
  const Faults faults_;
  std::array<Side, 2> sides_;
  std::uint64_t clock_ns_ = 0;
};

class TriggeredModel : public testing::Test {
 protected:
  void SetUp() override {
    if (test::kSanitized) GTEST_SKIP() << "sanitizers do not follow the scheduler's stacks; the other builds run this";
  }
};
class TriggeredModelFaults : public TriggeredModel {};

std::string explore(unsigned blocks, Word times, Faults faults = {}) {
  return test::model::explore([&](Scheduler& scheduler) { return World(scheduler, blocks, times, faults); });
}

TEST_F(TriggeredModel, exchanges_take_their_own_cells) { EXPECT_EQ(explore(1, 3), ""); }
TEST_F(TriggeredModel, exchanges_of_two_blocks_take_their_own_cells) { EXPECT_EQ(explore(2, 2), ""); }

constexpr const char* kOthersCells = "an exchange took another one's cells";
TEST_F(TriggeredModelFaults, messages_packed_before_those_before_them_have_gone_are_found) {
  EXPECT_EQ(explore(1, 3, {.packs_unasked = true}), kOthersCells);
}
TEST_F(TriggeredModelFaults, messages_that_come_before_those_before_them_were_taken_are_found) {
  EXPECT_EQ(explore(1, 3, {.receives_unasked = true}), kOthersCells);
}
TEST_F(TriggeredModelFaults, a_ring_before_all_blocks_have_packed_is_found) {
  EXPECT_EQ(explore(2, 2, {.no_fan_in = true}), kOthersCells);
}

}  // namespace
}  // namespace brant::halo
