// Runs as every rank of a job (`brant run -n N`): the global space between processes, over the real network. The same
// program serves host memory, the emulated device and CUDA: BRANT_GPU decides.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "multi/pgas/space_of_ranks.h"
#include "support/own_host.h"
#include "support/shared_host.h"

namespace brant {
namespace {

using test::job;

/// Before the runtime is opened: no memory is shared, everything goes over UCX.
[[maybe_unused]] const bool g_own_host =  // NOLINT(bugprone-throwing-static-initialization): the test fails then
    std::getenv("BRANT_TEST_OWN_HOSTS") != nullptr && test::become_own_host();
/// Or several processes are one host.
test::SharedHost g_shared_host;
[[maybe_unused]] const bool g_pairs =  // NOLINT(bugprone-throwing-static-initialization): the test fails then
    g_shared_host.join_if_told();

using GlobalSpaceOfRanks = test::SpaceOfRanks;
using test::image;
using test::kinds;
using test::kinds_of_others;
using test::outcome;

TEST_F(GlobalSpaceOfRanks, copies_between_all_kinds_arrive_whole) {
  constexpr std::size_t kBytes = 300'001;
  const int right = (self_ + 1) % size_, left = (self_ + size_ - 1) % size_;
  for (const MemoryKind there : kinds_of_others()) {
    GlobalSegment segment = space_.create(there, kBytes + 512);
    const auto places = gather(segment.allocate<std::byte>(kBytes));
    for (const MemoryKind here : kinds()) {
      SCOPED_TRACE(std::string(memory_kind_name(here)) + " to " + std::string(memory_kind_name(there)));
      const Memory local = job().allocate(here, kBytes);
      const std::vector<std::byte> mine = image(kBytes, self_, right);
      job().copy(local, std::span(mine));
      ASSERT_TRUE(outcome(space_.put(places[at(right)], ConstBuffer(local))).ok());
      barrier();
      std::vector<std::byte> seen(kBytes);
      const std::vector<std::byte> theirs = image(kBytes, left, self_);
      job().copy(Buffer(std::span(seen)), ConstBuffer(segment.local(places[at(self_)]), kBytes, there));
      EXPECT_EQ(seen, theirs);
      ASSERT_TRUE(outcome(space_.get(places[at(right)], Buffer(local))).ok());
      job().copy(Buffer(std::span(seen)), local);
      EXPECT_EQ(seen, mine);
      barrier();
    }
    static_cast<void>(job().worker().progress());
    barrier();
  }
}

/// Those whose pointers this process may follow, and all of those.
TEST_F(GlobalSpaceOfRanks, the_local_team_is_who_has_memory_that_is_mapped_here) {
  GlobalSegment segment = space_.create(MemoryKind::host, 1 << 16);
  const auto words = gather(segment.allocate<std::uint64_t>());
  *segment.local(words[at(self_)]) = at(self_) + 1;
  Team local = team_.local();
  std::vector<int> members, mapped;
  for (int m = 0; m < local.size(); ++m) members.push_back(local.member(m).value);
  for (int rank = 0; rank < size_; ++rank) {
    ASSERT_TRUE(outcome(space_.reach(words[at(rank)])).ok());
    if (space_.local(words[at(rank)]) != nullptr) mapped.push_back(rank);
  }
  EXPECT_EQ(members, mapped);
  barrier();
  for (const int rank : members) EXPECT_EQ(*space_.local(words[at(rank)]), at(rank) + 1);
  barrier();
}

/// Rank 0 looks at its memory, and makes no progress.
TEST_F(GlobalSpaceOfRanks, a_segment_published_to_a_team_is_reached_without_its_owner) {
  GlobalSegment segment = space_.create(MemoryKind::host, 1 << 16);
  const auto words = gather(segment.allocate<std::uint64_t>());
  std::uint64_t& word = *segment.local(words[at(self_)]);
  word = 0;
  Team local = team_.local();
  ASSERT_EQ(segment.publish(local), Status::ok);
  barrier();
  if (self_ != local.member(0).value) {
    EXPECT_TRUE(outcome(space_.atomic(words[at(local.member(0).value)], AtomicOp::add, 1)).ok());
  } else {
    const auto others = static_cast<std::uint64_t>(local.size()) - 1;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::atomic_ref(word).load() < others && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_EQ(std::atomic_ref(word).load(), others);
  }
  barrier();
  EXPECT_EQ(GlobalSegment().publish(local), Status::invalid_argument);
}

TEST_F(GlobalSpaceOfRanks, a_third_party_copies_between_two_others) {
  if (size_ < 3) GTEST_SKIP() << "for three ranks";
  constexpr std::size_t kBytes = 100'000;
  for (const MemoryKind kind : kinds_of_others()) {
    SCOPED_TRACE(memory_kind_name(kind));
    GlobalSegment segment = space_.create(kind, 2 * kBytes + 512);
    const auto from = gather(segment.allocate<std::byte>(kBytes)), to = gather(segment.allocate<std::byte>(kBytes));
    const std::vector<std::byte> mine = image(kBytes, self_, 50);
    job().copy(Buffer(segment.local(from[at(self_)]), kBytes, kind), std::span(mine));
    barrier();
    // Rank r copies from r + 1 to r + 2.
    const int source = (self_ + 1) % size_, target = (self_ + 2) % size_;
    const OpResult copied = outcome(space_.copy<std::byte>(from[at(source)], to[at(target)], kBytes));
    EXPECT_TRUE(copied.ok()) << status_name(copied.status);
    EXPECT_EQ(copied.bytes, kBytes);
    barrier();
    std::vector<std::byte> seen(kBytes);
    job().copy(Buffer(std::span(seen)), ConstBuffer(segment.local(to[at(self_)]), kBytes, kind));
    EXPECT_EQ(seen, image(kBytes, (self_ + size_ - 1) % size_, 50));
    barrier();
  }
}

/// Litmus: who sees the flag sees the bytes, however they travelled, without a look at the runtime in between.
TEST_F(GlobalSpaceOfRanks, flags_come_behind_their_bytes) {
  constexpr int kTurns = 200;
  constexpr std::size_t kWords = 2000;
  for (const MemoryKind kind : kinds_of_others()) {
    SCOPED_TRACE(memory_kind_name(kind));
    GlobalSegment data = space_.create(kind, kWords * 8 + 512), flags = space_.create(MemoryKind::host, 4096);
    const auto rows = gather(data.allocate<std::uint64_t>(kWords));
    const auto words = gather(flags.allocate<std::uint64_t>());
    volatile std::uint64_t* const flag = flags.local(words[at(self_)]);
    *flag = 0;
    barrier();
    const int right = (self_ + 1) % size_;
    for (std::uint64_t turn = 1; turn <= kTurns; ++turn) {
      const std::vector<std::uint64_t> row(kWords, turn * 1000 + static_cast<std::uint64_t>(self_));
      const Operation put = space_.put(rows[at(right)], row, {.at_target = AtTarget::set(words[at(right)], turn)});
      ASSERT_EQ(job().worker().wait_until([&] { return *flag >= turn; }, std::chrono::seconds(60)), Status::ok);
      std::vector<std::uint64_t> seen(kWords);
      job().copy(Buffer(std::span(seen)), ConstBuffer(data.local(rows[at(self_)]), kWords * 8, kind));
      const auto left = static_cast<std::uint64_t>((self_ + size_ - 1) % size_);
      ASSERT_EQ(seen.front(), turn * 1000 + left);
      ASSERT_EQ(seen.back(), turn * 1000 + left);
      ASSERT_EQ(seen, std::vector<std::uint64_t>(kWords, turn * 1000 + left));
      ASSERT_TRUE(outcome(put).ok());
      barrier();
    }
  }
}

std::uint64_t nanoseconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

/// The word is the time at which it was set, by the clock that all processes of a machine have in common. Nothing else
/// is said to who sleeps, so that nothing else wakes it.
TEST_F(GlobalSpaceOfRanks, a_word_wakes_a_target_that_sleeps) {
  constexpr std::uint64_t kTurns = 9;
  constexpr auto kUntilAsleep = std::chrono::milliseconds(20);  // a sleep that nothing ends lasts 100
  GlobalSegment flags = space_.create(MemoryKind::host, 4096);
  const auto words = gather(flags.allocate<std::uint64_t>(static_cast<std::size_t>(size_)));
  std::uint64_t* const mine = flags.local(words[at(self_)]);  // rank 0: an answer of each
  std::ranges::fill(std::span(mine, at(size_)), 0);
  const auto has_come = [&](int place, std::uint64_t value) {
    return job().worker().wait_until([&] { return std::atomic_ref(mine[place]).load() >= value; },
                                     std::chrono::seconds(60));
  };
  bool by_atomic = false;
  const auto set = [&](int rank, int place, std::uint64_t value) {
    if (by_atomic) return outcome(space_.atomic(words[at(rank)] + place, AtomicOp::store, value));
    return outcome(space_.put(words[at(rank)], ConstBuffer(&value, 0),
                              {.at_target = AtTarget::set(words[at(rank)] + place, value)}));
  };
  barrier();
  std::array<std::vector<std::uint64_t>, 2> late;
  for (std::uint64_t turn = 1; turn <= 2 * kTurns; ++turn) {
    by_atomic = turn > kTurns;
    if (self_ == 0) {
      static_cast<void>(job().worker().wait_until([] { return false; }, kUntilAsleep));
      for (int rank = 1; rank < size_; ++rank) ASSERT_TRUE(set(rank, 0, nanoseconds_now()).ok());
      for (int rank = 1; rank < size_; ++rank) ASSERT_EQ(has_come(rank, turn), Status::ok);
    } else {
      ASSERT_EQ(has_come(0, mine[0] + 1), Status::ok);
      late[by_atomic ? 1 : 0].push_back(nanoseconds_now() - mine[0]);
      ASSERT_TRUE(set(0, self_, turn).ok());
    }
  }
  barrier();
  if (self_ == 0) return;
  for (std::vector<std::uint64_t>& each : late) {
    std::ranges::sort(each);
    EXPECT_LT(each[kTurns / 2], 10'000'000u) << "ns from the set word to who slept, at the median";
  }
}

TEST_F(GlobalSpaceOfRanks, a_fence_orders_what_comes_behind_it) {
  constexpr std::size_t kBytes = 64 << 10;
  constexpr int kPuts = 16;
  GlobalSegment data = space_.create(MemoryKind::host, kBytes * kPuts + 4096);
  const auto rows = gather(data.allocate<std::byte>(kBytes * kPuts));
  const auto words = gather(data.allocate<std::uint64_t>());
  *data.local(words[at(self_)]) = 0;
  barrier();
  const int right = (self_ + 1) % size_, left = (self_ + size_ - 1) % size_;
  const std::vector<std::byte> mine = image(kBytes, self_, right);
  ASSERT_TRUE(outcome(space_.reach(rows[at(right)])).ok());
  std::vector<std::unique_ptr<Op>> ops;
  for (int i = 0; i < kPuts; ++i) {
    ops.push_back(std::make_unique<Op>());
    ASSERT_LE(space_.post_put(rows[at(right)] + i * static_cast<std::ptrdiff_t>(kBytes), std::span(mine), *ops.back()),
              Status::in_progress);
  }
  ASSERT_TRUE(outcome(space_.fence(Rank{right})).ok());
  const Operation tell = space_.put_value(words[at(right)], 1);
  const volatile std::uint64_t* const flag = data.local(words[at(self_)]);
  ASSERT_EQ(job().worker().wait_until([&] { return *flag == 1; }, std::chrono::seconds(60)), Status::ok);
  const std::vector<std::byte> theirs = image(kBytes, left, self_);
  for (int i = 0; i < kPuts; ++i)
    EXPECT_EQ(std::memcmp(data.local(rows[at(self_)]) + at(i) * kBytes, theirs.data(), kBytes), 0) << "put " << i;
  ASSERT_TRUE(outcome(tell).ok());
  barrier();
}

TEST_F(GlobalSpaceOfRanks, retired_segments_are_given_back_while_others_put) {
  GlobalSegment heap = space_.create(MemoryKind::host, 1 << 20);
  const auto places = gather(heap.allocate<std::uint64_t>());
  const GlobalPtr<std::uint64_t> right = places[at((self_ + 1) % size_)];
  for (std::uint64_t turn = 0; turn < 100; ++turn) ASSERT_TRUE(outcome(space_.put_value(right, turn)).ok());
  barrier();
  heap = {};
  // Everybody goes on until the owner says that there is nothing any more, which is heard of in progress.
  for (std::uint64_t turn = 0;; ++turn) {
    const OpResult put = outcome(space_.put_value(right, turn));
    if (put.status == Status::not_found) break;
    ASSERT_TRUE(put.ok()) << status_name(put.status);
    ASSERT_LT(turn, 10'000'000u) << "a segment that was retired is written for ever";
    static_cast<void>(job().worker().progress());
  }
  barrier();
}

}  // namespace
}  // namespace brant
