// Members as threads that share a board: turns, and whole collectives in them. With the thread sanitizer too.
#include "ops/coll/turn_board.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ops/coll/board_rounds.h"
#include "support/effort.h"

namespace brant::coll {
namespace {

class Space {
 public:
  explicit Space(unsigned members)
      : bytes_(TurnBoard::bytes_for(members)),
        data_(static_cast<std::byte*>(::operator new(bytes_, std::align_val_t{4096}))) {
    std::memset(data_, 0, bytes_);
  }
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  ~Space() { ::operator delete(data_, std::align_val_t{4096}); }
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

template <typename Play>
void as_threads(unsigned members, Play&& play) {
  std::vector<std::thread> threads;
  for (unsigned self = 0; self < members; ++self) threads.emplace_back([&play, self] { play(self); });
  for (std::thread& thread : threads) thread.join();
}

/// All are there in time, and say the same.
bool wait_for_all(TurnBoard& board, const CallWords& words) {
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);;) {
    Fault fault;
    const Status status = board.meet(words, fault);
    if (status == Status::ok) return true;
    if (status != Status::in_progress || std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
}

/// What a member shows in a turn fills line and slot; a slow reader still finds it there, and the numbers wrap.
TEST(TurnBoard, nobody_overwrites_what_a_slow_member_still_reads) {
  constexpr unsigned kMembers = 3;
  const std::uint32_t turns = test::effort(3000u, 300u);
  const Space space(kMembers);
  const std::uint32_t first = std::numeric_limits<std::uint32_t>::max() - turns / 2;  // odd or even alike
  std::vector<std::string> faults(kMembers);
  as_threads(kMembers, [&](unsigned self) {
    TurnBoard board(space.data(), kMembers, self, first);
    std::mt19937 random(self);
    const CallWords words = words_of(CollectiveKind::allgather, DataType::bytes, ReduceOp::none, 8, 0);
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      const std::uint64_t value = std::uint64_t{turn} * 100 + self;
      std::memcpy(board.own_payload(), &value, sizeof(value));
      for (const std::size_t at : {std::size_t{0}, kSlotBytes - 8}) std::memcpy(board.own_slot() + at, &value, 8);
      board.publish(words);
      if (!wait_for_all(board, words)) {
        faults[self] = "turn " + std::to_string(turn) + " never came";
        return;
      }
      if (self == 0 && random() % 20 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
      for (unsigned member = 0; member < kMembers; ++member) {
        const std::uint64_t expected = std::uint64_t{turn} * 100 + member;
        std::uint64_t in_line = 0, in_slot = 0;
        std::memcpy(&in_line, board.line(member).payload, 8);
        std::memcpy(&in_slot, board.slot(member) + kSlotBytes - 8, 8);
        if (in_line != expected || in_slot != expected) faults[self] = "turn " + std::to_string(turn);
      }
      board.end_turn();
    }
  });
  for (const std::string& fault : faults) EXPECT_EQ(fault, "");
}

TEST(TurnBoard, other_words_are_seen_by_all) {
  constexpr unsigned kMembers = 3;
  const Space space(kMembers);
  std::vector<int> same(kMembers, -1);
  as_threads(kMembers, [&](unsigned self) {
    TurnBoard board(space.data(), kMembers, self);
    const CallWords words = words_of(CollectiveKind::broadcast, DataType::bytes, ReduceOp::none, 8, self == 2 ? 1 : 0);
    board.publish(words);
    same[self] = wait_for_all(board, words) ? 1 : 0;
  });
  EXPECT_EQ(same, std::vector<int>(kMembers, 0));
}

/// Whoever has read, and then sees no desertion, has read what was given.
TEST(TurnBoard, a_desertion_is_seen_before_what_comes_after_it) {
  constexpr unsigned kMembers = 2;
  for (int round = 0; round < test::effort(500, 50); ++round) {
    const Space space(kMembers);
    std::atomic<int> data{1};
    bool fooled = false;
    as_threads(kMembers, [&](unsigned self) {
      TurnBoard board(space.data(), kMembers, self);
      if (self == 0) {
        board.desert();
        data.store(2, std::memory_order_relaxed);
      } else {
        for (int i = 0; i < 100; ++i) {
          const int read = data.load(std::memory_order_relaxed);
          if (read == 2 && !board.is_deserted()) fooled = true;
        }
      }
    });
    ASSERT_FALSE(fooled);
    EXPECT_TRUE(TurnBoard(space.data(), kMembers, 1).is_deserted());
  }
}

/// Carries one call out as `TeamState` does.
void carry_out(TurnBoard& board, const Members& members, const Collective& call, const Bands& bands) {
  Work work;
  std::string why;
  ASSERT_EQ(make_work(call, members, work, why), Status::ok) << why;
  const Plan plan = plan_for(without_reads({work.kind, members.count, work.bytes, work.element, true, bands}));
  BoardRounds rounds(board, members, work, plan);
  for (std::uint64_t round = 0; round < plan.rounds; ++round) {
    rounds.put(round);
    board.publish(work.words);
    ASSERT_TRUE(wait_for_all(board, work.words));
    rounds.take(round);
    board.end_turn();
  }
}

/// One call after another, of changing sizes and sorts, with members that are ahead by random times.
TEST(BoardRounds, calls_of_changing_sizes_follow_each_other) {
  for (const unsigned count : {2u, 3u}) {
    const Space space(count);
    std::vector<std::string> faults(count);
    as_threads(count, [&](unsigned self) {
      const Members members{count, self};
      TurnBoard board(space.data(), count, self, std::numeric_limits<std::uint32_t>::max() - 20);
      std::mt19937 common(5), own(self);
      for (int i = 0; i < test::effort(300, 60); ++i) {
        const std::size_t sizes[] = {0, 1, 6, 12, 13, 1000, 3000, 20'000, 100'000};
        const std::size_t n = sizes[common() % std::size(sizes)];
        const unsigned which = common() % 4;
        const Bands bands{.slices_from = common() % 2 == 0 ? std::uint64_t{0} : std::uint64_t{1} << 40};
        if (own() % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 100));
        std::vector<std::int32_t> in(n), out(which == 1 ? n * count : n);
        for (std::size_t k = 0; k < n; ++k)
          in[k] = static_cast<std::int32_t>(k) * 3 + static_cast<std::int32_t>(self) + i;
        const ConstBuffer from(in.data(), n * 4);
        const Buffer to(out.data(), out.size() * 4);
        if (which == 0) carry_out(board, members, allreduce(from, to, DataType::i32, ReduceOp::sum), bands);
        if (which == 1) carry_out(board, members, allgather(from, to), bands);
        if (which == 2) carry_out(board, members, reduce_to(from, to, DataType::i32, ReduceOp::sum, 1), bands);
        if (which == 3) carry_out(board, members, scan(from, to, DataType::i32, ReduceOp::max), bands);
        for (std::size_t k = 0; k < n; ++k) {
          const auto base = static_cast<std::int32_t>(k) * 3 + i;
          const auto members_sum = static_cast<std::int32_t>(count * (count - 1) / 2);
          const std::int32_t sum = base * static_cast<std::int32_t>(count) + members_sum;
          bool right = true;
          if (which == 0 || (which == 2 && self == 1)) right = out[k] == sum;
          if (which == 1) right = out[n * (count - 1) + k] == base + static_cast<std::int32_t>(count) - 1;
          if (which == 3) right = out[k] == base + static_cast<std::int32_t>(self);
          if (!right && faults[self].empty())
            faults[self] = "call " + std::to_string(i) + " sort " + std::to_string(which);
        }
      }
    });
    for (const std::string& fault : faults) EXPECT_EQ(fault, "");
  }
}

}  // namespace
}  // namespace brant::coll
