// The protocol of collectives on streams, its own source, under every schedule with a few deviations and many by
// chance: every member gets what all have given. And faults put in are found.
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/coll/call_words.h"
#include "ops/coll/device/stream_rounds.h"
#include "support/effort.h"
#include "support/model/explore.h"
#include "support/model/stepped_thread.h"

namespace brant::test {
namespace {

using coll::StreamAlgorithm;
using coll::StreamBoard;
using coll::StreamCall;
using coll::StreamRoom;
using coll::StreamTalk;
using coll::Word;
using model::Scheduler;

struct Faults {
  bool no_fence = false;  ///< A head does not come behind what lies in rooms.
  bool one_set = false;   ///< The same set of heads and lines serves in every turn.
};

/// A kernel of one block and one thread in the model. A line is one access, which orders nothing else.
class ModelBlock : public model::SteppedThread {
 public:
  ModelBlock(Scheduler& scheduler, std::uint64_t& clock_ns, const Faults& faults, const Word* turn)
      : SteppedThread(scheduler, clock_ns), faults_(faults), turn_(turn) {}

  // What the steps call is found by its name, in a Machine that they are compiled for.
  // NOLINTBEGIN(bugprone-derived-method-shadowing-base-method)
  void fence_system() {
    if (!faults_.no_fence) SteppedThread::fence_system();
  }
  void store_line(Word* to, simt::Pair pair) {
    to[1] = pair.second;
    SteppedThread::store_relaxed(to, pair.first);
  }
  void store_relaxed(Word* to, Word value) {
    SteppedThread::store_relaxed(to, faults_.one_set && to == turn_ ? value + 1 : value);
  }
  // NOLINTEND(bugprone-derived-method-shadowing-base-method)

 private:
  const Faults& faults_;
  const Word* const turn_;
};

/// Some members that make these calls, each an allreduce of 32 bytes, or of 64 by slots.
class World {
 public:
  World(Scheduler& scheduler, unsigned members, std::vector<StreamAlgorithm> calls, Faults faults)
      : scheduler_(scheduler), members_(members), calls_(std::move(calls)), faults_(faults), talks_(members) {
    for (unsigned m = 0; m < members; ++m)
      boards_.push_back(std::make_unique<std::uint64_t[]>(StreamBoard::bytes() / 8 + 16));
  }

  std::vector<std::function<void()>> make() {
    done_ = 0;
    std::vector<std::function<void()>> bodies;
    for (unsigned m = 0; m < members_; ++m) {
      reset(m);
      bodies.emplace_back([this, m] { play(m); });
    }
    return bodies;
  }
  void check() {
    if (done_ != members_ * calls_.size()) wrong = "not all calls have ended";
  }
  std::string wrong;

 private:
  static constexpr std::size_t kWords = 8;

  [[nodiscard]] StreamBoard& board(unsigned member) {
    const auto place = (reinterpret_cast<std::uintptr_t>(boards_[member].get()) + 127) / 128 * 128;
    return *reinterpret_cast<StreamBoard*>(place);
  }
  /// What the calls touch.
  void reset(unsigned member) {
    talks_[member] = {};
    talks_[member].patience_ns = ~Word{0};
    auto* const memory = reinterpret_cast<std::byte*>(&board(member));
    std::memset(static_cast<void*>(memory), 0, sizeof(StreamBoard));
    for (Word turn = 0; turn < 6; ++turn) {
      std::byte* const room = memory + StreamBoard::room_at(turn, 0);
      for (unsigned from = 0; from < members_; ++from) {
        std::memset(memory + StreamBoard::lines_at(members_, turn, 0, from), 0, kWords * 16);
        std::memset(room + from * StreamRoom::slot_bytes(members_), 0, kWords * 8);
        std::memset(room + from * StreamRoom::slice_bytes(members_), 0, kWords * 8);
        std::memset(room + StreamRoom::kResultsAt + from * StreamRoom::slice_bytes(members_), 0, kWords * 8);
      }
    }
  }
  [[nodiscard]] static Word given(unsigned member, std::size_t call, unsigned word) {
    return Word{1000} * (member + 1) + Word{10} * call + word;
  }
  void play(unsigned self) {
    ModelBlock machine(scheduler_, clock_ns_, faults_, &board(self).blocks[0].turn);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const bool slots = calls_[i] == StreamAlgorithm::slots;
      const std::size_t count = slots ? kWords : kWords / 2;
      Word in[kWords], out[kWords] = {};
      for (unsigned k = 0; k < count; ++k) in[k] = given(self, i, k);
      const coll::CallWords words =
          coll::words_of(CollectiveKind::allreduce, DataType::u64, ReduceOp::sum, count * 8, 0);
      StreamCall call{};
      call.kind = static_cast<std::uint8_t>(CollectiveKind::allreduce);
      call.type = static_cast<std::uint8_t>(DataType::u64);
      call.op = static_cast<std::uint8_t>(ReduceOp::sum);
      call.algorithm = calls_[i];
      call.members = static_cast<std::uint8_t>(members_);
      call.bytes = call.share = count * 8;
      // Two words at a time of slots: more turns than a block is ahead.
      call.piece = call.algorithm == StreamAlgorithm::lines ? call.bytes : 16;
      call.rounds = slots ? 4 : 1;
      call.low = words.low;
      call.high = words.high;
      call.self = static_cast<std::uint8_t>(self);
      call.in = reinterpret_cast<const std::byte*>(in);
      call.out = reinterpret_cast<std::byte*>(out);
      call.talk = &talks_[self];
      for (unsigned m = 0; m < members_; ++m) call.boards[m] = &board(m);
      coll::run_stream_call(machine, call);
      for (unsigned k = 0; k < count; ++k) {
        Word sum = 0;
        for (unsigned m = 0; m < members_; ++m) sum += given(m, i, k);
        scheduler_.expect(out[k] == sum, "a sum is wrong");
      }
      ++done_;
    }
    static_cast<void>(machine.load_acquire(&talks_[self].abort));  // it does not end with its last store
  }

  Scheduler& scheduler_;
  const unsigned members_;
  const std::vector<StreamAlgorithm> calls_;
  const Faults faults_;
  std::vector<StreamTalk> talks_;
  std::vector<std::unique_ptr<std::uint64_t[]>> boards_;
  std::uint64_t clock_ns_ = 0;
  std::size_t done_ = 0;
};

class CollStreamModel : public testing::Test {
 protected:
  void SetUp() override {
    if (test::kSanitized) GTEST_SKIP() << "sanitizers do not follow the scheduler's stacks; the other builds run this";
  }
};
class CollStreamModelFaults : public CollStreamModel {};

std::string explore(unsigned members, const std::vector<StreamAlgorithm>& calls, Faults faults = {}) {
  return model::explore([&](Scheduler& scheduler) { return World(scheduler, members, calls, faults); });
}

constexpr auto kLines = StreamAlgorithm::lines, kSlots = StreamAlgorithm::slots, kSlices = StreamAlgorithm::slices;

TEST_F(CollStreamModel, lines_are_whole) { EXPECT_EQ(explore(2, {kLines, kLines, kLines}), ""); }
TEST_F(CollStreamModel, slots_are_whole) { EXPECT_EQ(explore(2, {kSlots, kSlots, kSlots}), ""); }
TEST_F(CollStreamModel, slices_are_whole) { EXPECT_EQ(explore(2, {kSlices, kSlices}), ""); }
TEST_F(CollStreamModel, calls_of_all_ways_follow_each_other) {
  EXPECT_EQ(explore(2, {kSlots, kLines, kSlices, kLines}), "");
}
TEST_F(CollStreamModel, of_three_members) { EXPECT_EQ(explore(3, {kLines, kSlots}), ""); }

TEST_F(CollStreamModel, lines_need_no_fence) { EXPECT_EQ(explore(2, {kLines, kLines}, {.no_fence = true}), ""); }

TEST_F(CollStreamModelFaults, a_head_without_a_fence_is_found) {
  EXPECT_EQ(explore(2, {kSlots}, {.no_fence = true}), "a sum is wrong");
  EXPECT_EQ(explore(2, {kSlices}, {.no_fence = true}), "a sum is wrong");
}
TEST_F(CollStreamModelFaults, one_set_for_all_turns_is_found) {
  EXPECT_NE(explore(2, {kLines, kLines, kLines}, {.one_set = true}), "");
  EXPECT_NE(explore(2, {kSlots, kSlots, kSlots}, {.one_set = true}), "");
}

}  // namespace
}  // namespace brant::test
