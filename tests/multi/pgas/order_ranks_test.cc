// Runs as every rank of a job (`brant run -n N`). Litmus tests of what a target is told behind the bytes of a copy: the
// weak form, which is about that copy alone, and the strong one, about all that was posted to the target before; told
// by a flag, a bell and a call; to a target that makes progress, and to one that looks at its memory and does nothing
// else.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "brant/notify.h"
#include "brant/ops/rpc.h"
#include "multi/pgas/space_of_ranks.h"
#include "support/effort.h"
#include "support/own_host.h"

namespace brant {
namespace {

using test::job;
using test::kinds;
using test::outcome;
using Word = std::uint64_t;

/// Before the runtime is opened: no memory is shared, everything goes over UCX.
[[maybe_unused]] const bool g_own_host =  // NOLINT(bugprone-throwing-static-initialization): the test fails then
    std::getenv("BRANT_TEST_OWN_HOSTS") != nullptr && test::become_own_host();

Word g_called = 0;
void note_step(Word step) { g_called = step; }

/// Each rank puts rows into memory of its right neighbour, of sizes that go by different ways, in memory of all kinds.
class Order : public test::SpaceOfRanks {
 protected:
  static constexpr std::array<std::size_t, 5> kRowWords = {150'000, 1, 40'000, 600, 3000};

  struct Row {
    GlobalSegment segment;
    MemoryKind kind{};
    std::size_t words = 0;
    std::vector<GlobalPtr<Word>> places;  ///< At each rank.
    std::vector<Word> mine;               ///< What this rank puts.
  };

  void SetUp() override {
    g_called = 0;
    flags_ = space_.create(MemoryKind::host, 1 << 16);
    flag_ = gather(flags_.allocate<Word>());
    sum_ = gather(flags_.allocate<Word>());
    *flags_.local(flag_[at(self_)]) = *flags_.local(sum_[at(self_)]) = 0;
    for (const std::size_t words : kRowWords) {
      for (const MemoryKind kind : kinds()) {
        Row& row = rows_.emplace_back();
        row.kind = kind;
        row.words = words;
        row.segment = space_.create(kind, words * sizeof(Word) + 512);
        row.places = gather(row.segment.allocate<Word>(words));
        row.mine.resize(words);
        ASSERT_TRUE(outcome(space_.reach(row.places[at(right_)])).ok());
      }
    }
    ASSERT_TRUE(outcome(space_.reach(flag_[at(right_)])).ok());
    barrier();
  }
  void TearDown() override { barrier(); }

  static Word content(Word step, int from) { return step * 1000 + static_cast<Word>(from); }
  void fill(Word step) {
    for (Row& row : rows_) std::ranges::fill(row.mine, content(step, self_));
  }
  Operation put(std::size_t row, AtTarget told) {
    return space_.put(rows_[row].places[at(right_)], rows_[row].mine, {.at_target = std::move(told)});
  }
  void begin_put(std::size_t row, AtTarget told = {}) {
    under_way_.emplace_back(new Operation(put(row, std::move(told))));
  }
  AtTarget set(Word step) { return AtTarget::set(flag_[at(right_)], step); }
  /// Puts all rows and adds to a sum; the last row tells.
  void put_all(AtTarget told) {
    for (std::size_t row = 0; row + 1 < rows_.size(); ++row) begin_put(row);
    under_way_.emplace_back(new Operation(space_.atomic(sum_[at(right_)], AtomicOp::add, 3)));
    begin_put(rows_.size() - 1, std::move(told));
  }
  void await_all() {
    for (const auto& each : under_way_) {
      const OpResult result = outcome(*each);
      EXPECT_TRUE(result.ok()) << status_name(result.status);
    }
    under_way_.clear();
  }

  [[nodiscard]] Word flag() { return std::atomic_ref(*flags_.local(flag_[at(self_)])).load(std::memory_order_acquire); }
  /// What the left neighbour has put there is whole.
  void expect_row(std::size_t index, Word step) {
    const Row& row = rows_[index];
    std::vector<Word> seen(row.words);
    job().copy(Buffer(std::span(seen)),
               ConstBuffer(row.segment.local(row.places[at(self_)]), row.words * sizeof(Word), row.kind));
    const auto other = std::ranges::find_if(seen, [&](Word word) { return word != content(step, left_); });
    ASSERT_EQ(other - seen.begin(), static_cast<std::ptrdiff_t>(row.words))
        << "step " << step << ": the first word of " << row.words << " of " << memory_kind_name(row.kind)
        << " memory that is not there";
  }
  void expect_all(Word step) {
    for (std::size_t row = 0; row < rows_.size(); ++row) expect_row(row, step);
    ASSERT_EQ(std::atomic_ref(*flags_.local(sum_[at(self_)])).load(), 3 * step);
  }

  GlobalSegment flags_;
  std::vector<GlobalPtr<Word>> flag_, sum_;
  std::vector<Row> rows_;
  std::vector<std::unique_ptr<Operation>> under_way_;
  const Word steps_ = static_cast<Word>(test::effort(60, 8));
};

/// The first row, which is large, is under way when the last one tells.
TEST_F(Order, the_weak_form_comes_behind_its_own_bytes) {
  for (Word step = 1; step <= steps_; ++step) {
    fill(step);
    begin_put(0);
    for (std::size_t row = 1; row < rows_.size(); ++row) {
      const Word told = (step - 1) * rows_.size() + row;
      begin_put(row, set(told));
      ASSERT_EQ(job().worker().wait_until([&] { return flag() >= told; }, std::chrono::seconds(60)), Status::ok);
      expect_row(row, step);
      ASSERT_TRUE(outcome(*under_way_.back()).ok());  // flags of the weak form come in any order
    }
    await_all();
    barrier();
  }
}

TEST_F(Order, the_strong_form_comes_behind_all_that_was_posted_before) {
  for (Word step = 1; step <= steps_; ++step) {
    fill(step);
    put_all(set(step).behind_all());
    ASSERT_EQ(job().worker().wait_until([&] { return flag() >= step; }, std::chrono::seconds(60)), Status::ok);
    expect_all(step);
    await_all();
    barrier();
  }
}

/// Of flags that tell of different rows, each comes behind the rows before it, and behind the flags before it.
TEST_F(Order, strong_flags_come_in_their_order) {
  Word told = 0;
  for (Word step = 1; step <= steps_; ++step) {
    fill(step);
    const Word first = told;
    for (std::size_t row = 0; row < rows_.size(); ++row) begin_put(row, set(++told).behind_all());
    for (Word seen = first; seen < told;) {
      ASSERT_EQ(job().worker().wait_until([&] { return flag() > seen; }, std::chrono::seconds(60)), Status::ok);
      ASSERT_GT(flag(), seen) << "a flag only grows";
      seen = flag();
      for (std::size_t row = 0; row < seen - first; ++row) expect_row(row, step);
    }
    await_all();
    barrier();
  }
}

/// Where the bytes go without the target's help, so does what tells of them. Elsewhere the network may need it.
TEST_F(Order, the_strong_form_reaches_a_target_that_makes_no_progress) {
  if (space_.local(flag_[at(right_)]) == nullptr) GTEST_SKIP() << "another host: the target has a part in it";
  for (Word step = 1; step <= steps_; ++step) {
    fill(step);
    barrier();
    if (self_ % 2 == 0) {
      put_all(set(step).behind_all());
      await_all();
    } else {
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (flag() < step && std::chrono::steady_clock::now() < until) std::this_thread::yield();
      ASSERT_EQ(flag(), step);
      expect_all(step);
    }
    barrier();
  }
}

TEST_F(Order, a_call_comes_behind_all_that_was_posted_before) {
  const Rpc rpc(job());
  barrier();
  for (Word step = 1; step <= steps_; ++step) {
    fill(step);
    put_all(AtTarget::call(rpc.pack<&note_step>(Rank{right_}, step)).behind_all());
    ASSERT_EQ(job().worker().wait_until([&] { return g_called >= step; }, std::chrono::seconds(60)), Status::ok);
    expect_all(step);
    await_all();
    barrier();
  }
}

TEST_F(Order, a_bell_comes_behind_all_that_was_posted_before) {
  if (space_.local(flag_[at(right_)]) == nullptr) GTEST_SKIP() << "bells are rung on one host";
  if (job().device_kind() == MemoryKind::host) GTEST_SKIP() << "bells are of processes with a device";
  Notifier notifier(job());
  Bell bell = notifier.make({.rung_by = RungBy::peer, .seen_by = SeenBy::host, .peer = Rank{left_}});
  const auto tickets = gather(bell.ticket());
  PeerBell ring(job(), Rank{right_}, tickets[at(right_)]);
  for (Word step = 1; step <= steps_; ++step) {
    fill(step);
    put_all(AtTarget::ring(ring, step).behind_all());
    ASSERT_TRUE(outcome(bell.when(step)).ok());
    expect_all(step);
    await_all();
    barrier();
  }
}

}  // namespace
}  // namespace brant
