// Runs as every rank of a job (`brant run -n N`): what one process alone does not show of the global space. Shapes,
// calls and bells behind bytes, and what streams do, between processes: by links, with devices, and over UCX.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/device.h"
#include "brant/notify.h"
#include "brant/ops/rpc.h"
#include "multi/pgas/space_of_ranks.h"
#include "support/own_host.h"
#include "support/shapes.h"

namespace brant {
namespace {

using test::image;
using test::job;
using test::kinds;
using test::kinds_of_others;
using test::outcome;
using Word = std::uint64_t;

/// Before the runtime is opened: no memory is shared, everything goes over UCX.
[[maybe_unused]] const bool g_own_host =  // NOLINT(bugprone-throwing-static-initialization): the test fails then
    std::getenv("BRANT_TEST_OWN_HOSTS") != nullptr && test::become_own_host();

struct Called {
  Word step = 0;
  int from = -1;
} g_called;
void note_step(Caller caller, Word step) { g_called = {step, caller.rank.value}; }

/// Each rank puts a row into memory of its right neighbour.
class Forms : public test::SpaceOfRanks {
 protected:
  static constexpr std::size_t kBytes = 200'001;

  void TearDown() override { barrier(); }

  /// One of each rank, in memory of this kind.
  std::vector<GlobalPtr<std::byte>> make_rows(MemoryKind kind, std::size_t bytes = kBytes) {
    segment_ = space_.create(kind, bytes + 512);
    kind_ = kind;
    auto rows = gather(segment_.allocate<std::byte>(bytes));
    EXPECT_TRUE(outcome(space_.reach(rows[at(right_)])).ok());
    return rows;
  }
  [[nodiscard]] std::vector<std::byte> row_here(GlobalPtr<std::byte> row, std::size_t bytes = kBytes) {
    std::vector<std::byte> seen(bytes);
    job().copy(Buffer(std::span(seen)), ConstBuffer(segment_.local(row), bytes, kind_));
    return seen;
  }
  /// Of each rank, behind its row: zero until somebody tells.
  std::vector<GlobalPtr<Word>> make_flags() {
    auto flags = gather(segment_.allocate<Word>());
    const Word zero = 0;
    job().copy(Buffer(segment_.local(flags[at(self_)]), sizeof(Word), kind_),
               ConstBuffer(&zero, sizeof(Word), MemoryKind::host));
    return flags;
  }
  /// What the left neighbour has put in a step, and a stream has copied there.
  void expect_landed(const Memory& landing, Word step) {
    std::vector<std::byte> seen(kBytes);
    job().copy(Buffer(std::span(seen)), ConstBuffer(landing));
    ASSERT_EQ(seen, image(kBytes, left_, static_cast<int>(step)));
  }
  template <typename Done>
  void wait_until(Done&& done) {
    ASSERT_EQ(job().worker().wait_until(done, std::chrono::seconds(60)), Status::ok);
  }
  /// Before streams wait for words: what was freed is given to the driver now, which waits for all streams. Within a
  /// wait it would be a wait for a word that comes by this very process's progress.
  void free_what_is_due() {
    job().tidy();
    barrier();
  }
  [[nodiscard]] static bool has_device() { return job().device_kind() != MemoryKind::host; }

  GlobalSegment segment_;
  MemoryKind kind_{};
};

TEST_F(Forms, a_function_runs_at_the_target_behind_the_bytes) {
  const Rpc rpc(job());
  barrier();
  Word step = 0;
  for (const MemoryKind there : kinds_of_others()) {
    const auto rows = make_rows(there);
    for (const MemoryKind here : kinds()) {
      SCOPED_TRACE(std::string(memory_kind_name(here)) + " to " + std::string(memory_kind_name(there)));
      ++step;
      const Memory local = job().allocate(here, kBytes);
      const std::vector<std::byte> mine = image(kBytes, self_, static_cast<int>(step));
      job().copy(local, std::span(mine));
      const Operation put = space_.put(rows[at(right_)], ConstBuffer(local),
                                       {.at_target = AtTarget::call(rpc.pack<&note_step>(Rank{right_}, step))});
      wait_until([&] { return g_called.step == step; });
      EXPECT_EQ(g_called.from, left_);
      EXPECT_EQ(row_here(rows[at(self_)]), image(kBytes, left_, static_cast<int>(step)));
      EXPECT_TRUE(outcome(put).ok());
      barrier();
    }
  }
}

TEST_F(Forms, bytes_go_from_every_shape_into_every_other) {
  constexpr std::size_t kRoom = test::ShapeZoo::room(1);
  const test::ShapeZoo zoo(1);
  const auto& all = zoo.shapes();
  for (const MemoryKind there : kinds_of_others()) {
    const auto rows = make_rows(there, kRoom);
    for (const MemoryKind here : kinds()) {
      SCOPED_TRACE(std::string(memory_kind_name(here)) + " to " + std::string(memory_kind_name(there)));
      const Memory local = job().allocate(here, kRoom);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto &one = all[i], &other = all[(i + 1) % all.size()];
        SCOPED_TRACE(one.name + " to " + other.name);
        const std::vector<std::byte> mine = image(kRoom, self_, 1), theirs = image(kRoom, left_, 1);
        const std::vector<std::byte> before = image(kRoom, self_, 2), beside = image(kRoom, right_, 2);
        job().copy(local, std::span(mine));
        job().copy(Buffer(segment_.local(rows[at(self_)]), kRoom, there), std::span(before));
        barrier();
        const TransferShapes shapes{one.shape, other.shape};
        CopyOptions options;
        options.shapes = &shapes;
        ASSERT_TRUE(outcome(space_.put(rows[at(right_)], ConstBuffer(local), std::move(options))).ok());
        barrier();
        EXPECT_EQ(row_here(rows[at(self_)], kRoom), test::moved(before, 0, theirs, 0, shapes));
        CopyOptions back;
        back.shapes = &shapes;
        ASSERT_TRUE(outcome(space_.get(rows[at(right_)], Buffer(local), std::move(back))).ok());
        std::vector<std::byte> seen(kRoom);
        job().copy(Buffer(std::span(seen)), ConstBuffer(local));
        EXPECT_EQ(seen, test::moved(mine, 0, test::moved(beside, 0, mine, 0, shapes), 0, shapes));
        barrier();
      }
    }
  }
}

TEST_F(Forms, a_bell_rings_behind_the_bytes) {
  if (!has_device()) GTEST_SKIP() << "bells are of processes with a device";
  Notifier notifier(job());
  Bell bell = notifier.make({.rung_by = RungBy::peer, .seen_by = SeenBy::host, .peer = Rank{left_}});
  const auto tickets = gather(bell.ticket());
  std::unique_ptr<PeerBell> ring;
  try {
    ring = std::make_unique<PeerBell>(job(), Rank{right_}, tickets[at(right_)]);
  } catch (const Error& fault) {
    ASSERT_TRUE(g_own_host) << "a bell of this host: " << fault.what();
  }
  barrier();
  if (ring == nullptr) GTEST_SKIP() << "bells are rung on one host";
  Word step = 0;
  for (const MemoryKind there : kinds_of_others()) {
    const auto rows = make_rows(there);
    SCOPED_TRACE(memory_kind_name(there));
    ++step;
    const std::vector<std::byte> mine = image(kBytes, self_, static_cast<int>(step));
    const Operation put = space_.put(rows[at(right_)], std::span(mine), {.at_target = AtTarget::ring(*ring, step)});
    ASSERT_TRUE(outcome(bell.when(step)).ok());
    EXPECT_EQ(row_here(rows[at(self_)]), image(kBytes, left_, static_cast<int>(step)));
    EXPECT_TRUE(outcome(put).ok());
    barrier();
  }
}

/// A stream of the target waits for it, and copies what came before it.
/// They end in any order, and have one word in common.
TEST_F(Forms, a_counter_tells_of_what_all_others_have_put) {
  constexpr std::size_t kPart = 10'001;
  const int ranks = job().size();
  for (const MemoryKind kind : kinds_of_others()) {
    SCOPED_TRACE(memory_kind_name(kind));
    const auto rows = make_rows(kind, kPart * at(ranks));
    const auto counters = make_flags();
    const auto counted = [&] {
      Word seen = 0;
      job().copy(Buffer(&seen, sizeof(seen), MemoryKind::host),
                 ConstBuffer(segment_.local(counters[at(self_)]), sizeof(seen), kind));
      return seen;
    };
    barrier();
    for (int step = 1; step <= 5; ++step) {
      const std::vector<std::byte> mine = image(kPart, self_, step);
      std::deque<Operation> puts;
      for (int other = 0; other < ranks; ++other) {
        if (other == self_) continue;
        puts.emplace_back(Moment::delivered, [&](Op& op) noexcept {
          return space_.post_put(rows[at(other)] + static_cast<std::ptrdiff_t>(kPart) * self_,
                                 ConstBuffer(std::span(mine)), op,
                                 {.at_target = AtTarget::add(counters[at(other)], 3)});
        });
      }
      const Word all = Word{3} * at(ranks - 1) * at(step);
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (counted() < all) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline) << counted() << " of " << all;
        static_cast<void>(job().worker().progress());
      }
      const std::vector<std::byte> row = row_here(rows[at(self_)], kPart * at(ranks));
      for (int other = 0; other < ranks; ++other) {
        if (other == self_) continue;
        const auto part = row.begin() + static_cast<std::ptrdiff_t>(kPart) * other;
        ASSERT_EQ(std::vector<std::byte>(part, part + kPart), image(kPart, other, step)) << "of rank " << other;
      }
      for (Operation& put : puts) ASSERT_TRUE(outcome(put).ok());
      barrier();
      EXPECT_EQ(counted(), all);
      barrier();
    }
  }
}

TEST_F(Forms, a_stream_of_the_target_waits_for_the_flag_behind_the_bytes) {
  if (!has_device()) GTEST_SKIP() << "streams are a device's";
  free_what_is_due();
  const MemoryKind device = kinds_of_others().back();
  const auto rows = make_rows(device);
  const auto flags = make_flags();
  barrier();
  const Memory landing = job().allocate(device, kBytes);
  Stream stream = job().device().create_stream();
  for (Word step = 1; step <= 20; ++step) {
    ASSERT_EQ(space_.enqueue_wait(stream, flags[at(self_)], step), Status::ok);
    ASSERT_EQ(space_.enqueue_get(stream, rows[at(self_)], Buffer(landing)), Status::ok);
    const std::vector<std::byte> mine = image(kBytes, self_, static_cast<int>(step));
    const Operation put =
        space_.put(rows[at(right_)], std::span(mine), {.at_target = AtTarget::set(flags[at(right_)], step)});
    ASSERT_TRUE(outcome(put).ok());
    barrier();  // the left one's flag is there: the stream does not wait in vain
    ASSERT_EQ(stream.synchronize(), Status::ok);
    expect_landed(landing, step);
    if (HasFatalFailure()) return;
    barrier();
  }
}

/// No CPU takes part between the two streams.
TEST_F(Forms, a_stream_puts_and_tells_a_stream_of_the_target) {
  if (!has_device()) GTEST_SKIP() << "streams are a device's";
  free_what_is_due();
  const MemoryKind device = kinds_of_others().back();
  const auto rows = make_rows(device);
  const auto flags = make_flags();
  const Memory source = job().allocate(device, kBytes), landing = job().allocate(device, kBytes);
  Stream puts = job().device().create_stream(), waits = job().device().create_stream();
  barrier();
  if (space_.device_pointer(rows[at(right_)]) == nullptr) {
    EXPECT_TRUE(g_own_host) << "the memory of a device of this host is mapped";
    EXPECT_EQ(space_.enqueue_put(puts, rows[at(right_)], ConstBuffer(source)), Status::not_supported);
    return;
  }
  for (Word step = 1; step <= 20; ++step) {
    const std::vector<std::byte> mine = image(kBytes, self_, static_cast<int>(step));
    job().copy(source, std::span(mine));
    ASSERT_EQ(space_.enqueue_wait(waits, flags[at(self_)], step), Status::ok);
    ASSERT_EQ(space_.enqueue_get(waits, rows[at(self_)], Buffer(landing)), Status::ok);
    ASSERT_EQ(space_.enqueue_put(puts, rows[at(right_)], ConstBuffer(source)), Status::ok);
    ASSERT_EQ(space_.enqueue_set(puts, flags[at(right_)], step), Status::ok);
    ASSERT_EQ(puts.synchronize(), Status::ok);
    barrier();
    ASSERT_EQ(waits.synchronize(), Status::ok);
    expect_landed(landing, step);
    if (HasFatalFailure()) return;
    barrier();
  }
}

}  // namespace
}  // namespace brant
