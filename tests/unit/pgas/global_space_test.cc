// The global space between ranks of one process over the loopback network: every kind of memory, near and far.

#include "brant/pgas/global_space.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/device.h"
#include "brant/notify/notifier.h"
#include "brant/ops/rpc.h"
#include "brant/pgas.h"
#include "core/engine.h"
#include "support/grounds.h"
#include "support/spaces.h"

namespace brant {
namespace {

using test::InProcessJob;
using test::JobOptions;
using test::pattern;
using test::Spaces;

JobOptions with(int ranks, GpuChoice gpu = GpuChoice::emulated) { return test::ranks(ranks, gpu); }

TEST(GlobalSpace, a_courier_that_puts_sets_the_flag_too) {
  Spaces spaces(with(2));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::emulated, 1 << 16));
  GlobalSegment& flags = spaces.keep(spaces[0].create(MemoryKind::host, 1 << 16));
  const GlobalPtr<std::uint64_t> flag = flags.allocate<std::uint64_t>();
  const std::uint64_t* const word = flags.local(flag);
  Memory source = spaces.job().rank(1).allocate(MemoryKind::emulated, 64);
  const auto& by_cpu = spaces.job().rank(1).worker().engine().counters().path(Path::shm);
  unsigned without_cpu = 0;
  for (std::uint64_t turn = 1; turn <= 200; ++turn) {
    const std::uint64_t before = by_cpu.sends.read();
    const Operation put = spaces[1].put(heap.begin(), ConstBuffer(source), {.at_target = AtTarget::set(flag, turn)});
    ASSERT_EQ(spaces.outcome(put).status, Status::ok);
    ASSERT_EQ(std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(), turn);
    without_cpu += by_cpu.sends.read() == before ? 1 : 0;
  }
  if (test::small_mapped_path() == Path::courier) {
    EXPECT_GT(without_cpu, 0u) << "the courier has come, and tells";
  } else {
    EXPECT_EQ(without_cpu, 0u);
  }
  // A value that the courier's word has no room for.
  const Operation put =
      spaces[1].put(heap.begin(), ConstBuffer(source), {.at_target = AtTarget::set(flag, 5ull << 40)});
  EXPECT_EQ(spaces.outcome(put).status, Status::ok);
  EXPECT_EQ(*word, 5ull << 40);
}

TEST(GlobalSpace, a_segment_that_a_copy_reads_or_tells_in_outlives_its_retirement) {
  Spaces spaces(with(2));
  GlobalSegment& there = spaces.keep(spaces[0].create(MemoryKind::emulated, 8 << 20));
  for (const MemoryKind kind : {MemoryKind::emulated, MemoryKind::pinned}) {
    GlobalSegment own = spaces[1].create(kind, 8 << 20);
    const GlobalPtr<std::byte> from = own.begin(), to = there.begin();
    EXPECT_TRUE(spaces.outcome(spaces[1].reach(to)).ok());
    const Operation copy = spaces[1].copy<std::byte>(from, to, 8 << 20);
    ASSERT_FALSE(copy.done());
    Future<void> retired = own.retire();
    while (!copy.done()) {
      EXPECT_FALSE(retired.ready()) << "the memory is being read";
      spaces.job().run(1);
    }
    EXPECT_TRUE(copy.result().ok());
    EXPECT_TRUE(spaces.job().run_until([&] { return retired.ready(); }));
  }
}

TEST(GlobalSpace, a_fence_comes_behind_puts_to_segments_that_are_not_reached_yet) {
  Spaces spaces(with(2));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::host, 1 << 16));
  const GlobalPtr<int> at = heap.allocate<int>();
  *heap.local(at) = 0;
  const Operation put = spaces[1].put_value(at, 7);
  ASSERT_FALSE(put.done()) << "its owner is asked first";
  {
    const Operation dropped = spaces[1].fence(Rank{0});
    ASSERT_FALSE(dropped.done());
  }
  const Operation fence = spaces[1].fence(Rank{0});
  ASSERT_TRUE(spaces.job().run_until([&] { return fence.done(); }));
  EXPECT_TRUE(fence.result().ok());
  EXPECT_EQ(*heap.local(at), 7);
  EXPECT_TRUE(spaces.outcome(put).ok());
}

TEST(GlobalSpace, a_fence_that_nobody_waits_for_goes_on) {
  Spaces spaces(with(2));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::emulated, 8 << 20));
  Memory source = spaces.job().rank(1).allocate(MemoryKind::emulated, 8 << 20);
  EXPECT_TRUE(spaces.outcome(spaces[1].reach(heap.begin())).ok());
  const Operation put = spaces[1].put(heap.begin(), ConstBuffer(source));
  ASSERT_FALSE(put.done());
  {
    Operation fence = spaces[1].fence(Rank{0});
    ASSERT_FALSE(fence.done());
    fence.op().cancel();
  }
  EXPECT_TRUE(spaces.outcome(put).ok());
}

TEST(GlobalSpace, a_value_is_kept_where_the_network_is_forced) {
  Spaces spaces(with(2, GpuChoice::none));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::host, 1 << 16));
  const GlobalPtr<std::uint64_t> at = heap.allocate<std::uint64_t>(64);
  EXPECT_TRUE(spaces.outcome(spaces[1].reach(at)).ok());
  std::deque<Op> ops(64);
  for (std::uint64_t i = 0; i < 64; ++i) {
    std::uint64_t value = 1000 + i;
    CopyOptions options;
    options.path = Path::ucx;
    const Status posted =
        spaces[1].post_put_value((at + static_cast<std::ptrdiff_t>(i)).as<std::byte>(),
                                 ConstBuffer(&value, 8, MemoryKind::host), ops[i], std::move(options));
    if (posted == Status::not_supported) GTEST_SKIP() << "this network takes no puts";
    value = 0;
  }
  ASSERT_TRUE(spaces.job().run_until([&] { return std::ranges::none_of(ops, &Op::pending); }));
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(heap.local(at)[i], 1000 + i);
}

TEST(GlobalSpace, flags_are_aligned_and_counts_do_not_wrap_around) {
  Spaces spaces(with(2, GpuChoice::none));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::host, 1 << 16));
  const GlobalPtr<std::uint64_t> at = heap.allocate<std::uint64_t>(4);
  const GlobalPtr<std::uint64_t> between = (at.as<std::byte>() + 4).as<std::uint64_t>();
  const Operation put = spaces[1].put_value(at, std::uint64_t{1}, {.at_target = AtTarget::set(between, 1)});
  EXPECT_EQ(spaces.outcome(put).status, Status::invalid_argument);
  for (const std::size_t count : {std::size_t{1} << 61, (std::size_t{1} << 61) + 1}) {
    const Operation copy = spaces[1].copy<std::uint64_t>(at, at + 2, count);
    EXPECT_EQ(spaces.outcome(copy).status, Status::invalid_argument) << count;
  }
}

TEST(GlobalSpace, puts_and_gets_objects) {
  Spaces spaces(with(2, GpuChoice::none));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::host, 1 << 20));
  const GlobalPtr<double> row = heap.allocate<double>(100);
  std::vector<double> mine(100, 1.5), got(100);
  EXPECT_TRUE(spaces.outcome(spaces[1].put(row, mine)).ok());
  EXPECT_TRUE(spaces.outcome(spaces[1].get(row, got)).ok());
  EXPECT_EQ(got, mine);
  EXPECT_EQ(heap.local(row)[99], 1.5);
  EXPECT_TRUE(spaces.outcome(spaces[1].put_value(row + 3, 2.5)).ok());
  ValueGet<double> value = spaces[1].get_value(row + 3);
  EXPECT_TRUE(spaces.outcome(value.operation()).ok());
  EXPECT_EQ(value.value(), 2.5);
}

TEST(GlobalSpace, coroutines_await_values) {
  Spaces spaces(with(2, GpuChoice::none));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::host, 4096));
  const GlobalPtr<int> number = heap.allocate<int>();
  *heap.local(number) = 41;
  int seen = 0;
  const auto add_one = [](GlobalSpace& space, GlobalPtr<int> at, int& to) -> Task<void> {
    const int value = co_await space.get_value(at);
    (co_await space.put_value(at, value + 1)).or_throw("the number did not leave");
    to = co_await space.get_value(at);
  };
  Task<void> task = add_one(spaces[1], number, seen);
  task.start();
  ASSERT_TRUE(spaces.job().run_until([&] { return task.finished(); }));
  task.take();
  EXPECT_EQ(seen, 42);
}

TEST(GlobalSpace, values_need_no_memory_of_the_caller) {
  Spaces spaces(with(2));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::emulated, 4096));
  const GlobalPtr<std::uint64_t> word = heap.allocate<std::uint64_t>();
  Op op;
  {
    const std::uint64_t value = 77;
    ASSERT_EQ(spaces[1].post_put_value(word, ConstBuffer(&value, 8, MemoryKind::host), op), Status::in_progress);
  }
  ASSERT_TRUE(spaces.job().run_until([&] { return !op.pending(); }));
  {
    // Nobody waits for it any more, and nothing is written to where it was.
    const ValueGet<std::uint64_t> gone = spaces[1].get_value(word);
  }
  ValueGet<std::uint64_t> value = spaces[1].get_value(word);
  EXPECT_TRUE(spaces.outcome(value.operation()).ok());
  EXPECT_EQ(value.value(), 77u);
}

TEST(GlobalSpace, words_are_counted_in) {
  for (const MemoryKind kind : {MemoryKind::host, MemoryKind::emulated}) {
    Spaces spaces(with(2));
    GlobalSegment& heap = spaces.keep(spaces[0].create(kind, 4096));
    const GlobalPtr<std::int64_t> word = heap.allocate<std::int64_t>();
    EXPECT_TRUE(spaces.outcome(spaces[0].put_value(word, 40)).ok());
    for (const std::int64_t before : {40, 41}) {  // before the segment is reached, and then
      const FetchOperation<std::int64_t> count = spaces[1].fetch_add(word, 1);
      EXPECT_TRUE(spaces.outcome(count).ok());
      EXPECT_EQ(count.fetched().before, before);
    }
    EXPECT_TRUE(spaces.outcome(spaces[1].atomic(word, AtomicOp::max, 50)).ok());
    const FetchOperation<std::int64_t> swap = spaces[0].compare_swap(word, 50, 7);
    EXPECT_TRUE(spaces.outcome(swap).ok());
    EXPECT_EQ(swap.fetched().before, 50);
    ValueGet<std::int64_t> seen = spaces[1].get_value(word);
    EXPECT_TRUE(spaces.outcome(seen.operation()).ok());
    EXPECT_EQ(seen.value(), 7);
    EXPECT_EQ(spaces.outcome(spaces[1].fetch_add((word.as<std::byte>() + 4).as<std::int64_t>(), 1)).status,
              Status::invalid_argument)
        << "misaligned";
  }
}

TEST(GlobalSpace, a_published_segment_is_used_without_its_owner) {
  Spaces spaces(with(2, GpuChoice::none));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::host, 1 << 16));
  ASSERT_EQ(heap.publish(Rank{1}), Status::ok);
  EXPECT_EQ(heap.publish(Rank{2}), Status::invalid_argument);
  const GlobalPtr<int> at = heap.allocate<int>();
  Runtime& other = spaces.job().rank(1);
  const Operation put = spaces[1].put_value(at, 9);
  for (int turn = 0; turn < 100000 && !put.done(); ++turn) static_cast<void>(other.worker().progress());
  ASSERT_TRUE(put.done()) << "rank 0 has made no progress since";
  EXPECT_EQ(put.result().status, Status::ok);
}

TEST(GlobalSpace, a_segment_is_published_to_all_of_a_list_of_ranks_that_can_have_it) {
  Spaces spaces(with(3, GpuChoice::none));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::host, 1 << 16));
  const std::array ranks = {Rank{0}, Rank{1}, Rank{7}, Rank{2}};
  EXPECT_EQ(heap.publish(std::span(ranks).first(2)), Status::ok);
  EXPECT_EQ(heap.publish(ranks), Status::invalid_argument) << "there is no rank 7";
  const GlobalPtr<int> at = heap.allocate<int>(3);
  for (const int rank : {1, 2}) {
    const Operation put = spaces[rank].put_value(at + rank, rank);
    for (int turn = 0; turn < 100000 && !put.done(); ++turn)
      static_cast<void>(spaces.job().rank(rank).worker().progress());
    ASSERT_TRUE(put.done()) << "rank 0 has made no progress since";
    EXPECT_EQ(put.result().status, Status::ok);
    EXPECT_EQ(heap.local(at)[rank], rank);
  }
  GlobalSegment closed;
  EXPECT_EQ(closed.publish(ranks), Status::invalid_argument);
}

TEST(GlobalSpace, local_pointers_exist_where_memory_is_mapped) {
  Spaces spaces(with(2));
  GlobalSegment& host = spaces.keep(spaces[0].create(MemoryKind::host, 1 << 16));
  GlobalSegment& device = spaces.keep(spaces[0].create(MemoryKind::emulated, 1 << 16));
  const GlobalPtr<int> at = host.allocate<int>(4);
  EXPECT_EQ(spaces[0].local(at + 1), host.local(at) + 1) << "its own, unasked";
  EXPECT_EQ(spaces[1].local(at), nullptr) << "not reached yet";
  EXPECT_TRUE(spaces.outcome(spaces[1].reach(at)).ok());
  EXPECT_TRUE(spaces.outcome(spaces[1].reach(device.begin())).ok());
  int* const mapped = spaces[1].local(at);
  ASSERT_NE(mapped, nullptr);
  host.local(at)[2] = 5;
  EXPECT_EQ(mapped[2], 5);
  EXPECT_EQ(spaces[1].local(device.begin()), nullptr) << "the CPU does not follow pointers of a device";
  EXPECT_NE(spaces[1].device_pointer(device.begin()), nullptr);
  EXPECT_EQ(spaces[1].local(at + (1 << 20)), nullptr) << "outside";
}

TEST(GlobalSpace, segments_allocate_and_take_back) {
  Spaces spaces(with(1, GpuChoice::none));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::host, 1 << 16));
  const GlobalPtr<double> a = heap.allocate<double>(10);
  const GlobalPtr<char> b = heap.allocate<char>(1, 256);
  EXPECT_EQ(b.offset() % 256, 0u);
  EXPECT_EQ(heap.bytes_used(), 81u);
  EXPECT_EQ(heap.global(heap.local(a)), a);
  EXPECT_TRUE(heap.global(&heap).is_null());
  heap.deallocate(a);
  EXPECT_THROW(heap.deallocate(a), Error);
  EXPECT_THROW(heap.deallocate(b + 1), Error);
  heap.deallocate(GlobalPtr<char>{});
  try {
    static_cast<void>(heap.allocate<double>(1 << 20));
    FAIL() << "there is no room";
  } catch (const Error& fault) {
    EXPECT_EQ(fault.status(), Status::no_memory);
    EXPECT_NE(std::string(fault.what()).find("largest free piece"), std::string::npos) << fault.what();
  }
  EXPECT_THROW(static_cast<void>(heap.allocate<double>(~std::size_t{0} / 4)), Error);
}

TEST(GlobalSpace, bad_pointers_are_refused) {
  Spaces spaces(with(2, GpuChoice::none));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::host, 1 << 16));
  const GlobalPtr<int> at = heap.begin().as<int>();
  std::vector<int> items(8);
  EXPECT_EQ(spaces.outcome(spaces[1].put(GlobalPtr<int>{}, items)).status, Status::invalid_argument) << "null";
  EXPECT_EQ(spaces.outcome(spaces[1].put(GlobalPtr<int>(9, 1, 0, 1, 0), items)).status, Status::invalid_argument);
  EXPECT_EQ(spaces.outcome(spaces[1].put(GlobalPtr<int>(0, 99, 0, 1, 0), items)).status, Status::not_found);
  EXPECT_EQ(spaces.outcome(spaces[1].put(GlobalPtr<int>(1, 99, 0, 1, 0), items)).status, Status::not_found) << "own";
  EXPECT_EQ(spaces.outcome(spaces[1].put(at + (1 << 14) - 7, items)).status, Status::invalid_argument)
      << "past the end";
  EXPECT_EQ(spaces.outcome(spaces[1].put(at - 1, items)).status, Status::invalid_argument) << "before the beginning";
  EXPECT_EQ(spaces.outcome(spaces[0].copy<int>(at, at + (1 << 14), 1)).status, Status::invalid_argument);
  EXPECT_TRUE(spaces.outcome(spaces[1].put(at + (1 << 14) - 8, items)).ok());
}

TEST(GlobalSpace, a_retired_segment_is_freed_when_nobody_uses_it) {
  Spaces spaces(with(3, GpuChoice::none));
  GlobalSegment heap = spaces[0].create(MemoryKind::host, 1 << 16);
  const GlobalPtr<int> at = heap.allocate<int>();
  EXPECT_TRUE(spaces.outcome(spaces[1].put_value(at, 1)).ok());
  EXPECT_TRUE(spaces.outcome(spaces[2].put_value(at, 2)).ok());
  Future<void> gone = heap.retire();
  EXPECT_FALSE(heap.is_open());
  EXPECT_EQ(spaces.outcome(spaces[0].put_value(at, 3)).status, Status::not_found);
  for (int turn = 0; turn < 100; ++turn) static_cast<void>(spaces.job().rank(0).worker().progress());
  EXPECT_FALSE(gone.ready()) << "the others have not let go of it";
  ASSERT_TRUE(spaces.job().run_until([&] {
    spaces.job().rank(0).tidy();
    return gone.ready();
  }));
  EXPECT_EQ(spaces.outcome(spaces[1].put_value(at, 3)).status, Status::not_found);
  EXPECT_THROW(static_cast<void>(heap.retire()), Error);
  EXPECT_THROW(static_cast<void>(heap.allocate<int>()), Error);
}

TEST(GlobalSpace, a_space_that_has_gone_answers_that_it_has_no_segments) {
  InProcessJob job(with(2, GpuChoice::none));
  GlobalPtr<int> at;
  GlobalSpace here(job.rank(1));
  {
    GlobalSpace there(job.rank(0));
    EXPECT_THROW(GlobalSpace{job.rank(0)}, Error) << "one at a time";
    EXPECT_EQ(&GlobalSpace::of(job.rank(0)), &there);
    const GlobalSegment heap = there.create(MemoryKind::host, 4096);
    at = heap.begin().as<int>();
  }
  EXPECT_THROW(GlobalSpace::of(job.rank(0)), Error);
  EXPECT_EQ(job.outcome(here.put_value(at, 1)).status, Status::not_found);
}

TEST(GlobalSpace, bells_are_rung_behind_the_bytes) {
  Spaces spaces(with(2));
  Runtime &owner = spaces.job().rank(0), &other = spaces.job().rank(1);
  Notifier notifier(owner);
  Bell bell = notifier.make({.rung_by = RungBy::peer, .seen_by = SeenBy::host, .peer = Rank{1}});
  std::optional<PeerBell> ring;
  try {
    ring.emplace(other, Rank{0}, bell.ticket());
  } catch (const Error& fault) {
    GTEST_SKIP() << "ranks without links share no bells: " << fault.what();
  }
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::emulated, 1 << 20));
  const GlobalPtr<int> row = heap.allocate<int>(1 << 16);
  const std::vector<int> items(1 << 16, 3);
  const Operation rung = bell.when(1);
  const Operation put = spaces[1].put(row, items, {.at_target = AtTarget::ring(*ring, 1)});
  EXPECT_TRUE(spaces.outcome(rung).ok());
  std::vector<int> seen(1 << 16);
  owner.copy(Buffer(std::span(seen)), ConstBuffer(heap.local(row), seen.size() * sizeof(int), MemoryKind::emulated));
  EXPECT_EQ(seen, items);
  EXPECT_TRUE(spaces.outcome(put).ok());
}

/// What a call behind a copy has seen at the target.
int seen_by_call = 0;
void look_at(GlobalPtr<int> at, int factor) { seen_by_call += factor * at.rank(); }
void look_in(Caller caller, GlobalPtr<int> at) { seen_by_call = *GlobalSpace::of(caller.runtime).local(at); }

TEST(GlobalSpace, a_function_runs_at_the_target_behind_the_bytes) {
  Spaces spaces(with(2));
  for (const MemoryKind kind : {MemoryKind::host, MemoryKind::pinned}) {
    const Rpc here(spaces.job().rank(1)), there(spaces.job().rank(0));
    GlobalSegment& heap = spaces.keep(spaces[0].create(kind, 1 << 20));
    const GlobalPtr<int> row = heap.allocate<int>(100'000);
    const std::vector<int> items(100'000, 7);
    seen_by_call = 0;
    const Operation put =
        spaces[1].put(row, items, {.at_target = AtTarget::call(here.pack<&look_in>(Rank{0}, row + 99'999))});
    ASSERT_TRUE(spaces.job().run_until([] { return seen_by_call != 0; }));
    EXPECT_EQ(seen_by_call, 7);
    EXPECT_TRUE(spaces.outcome(put).ok());
  }
  const Rpc here(spaces.job().rank(1));
  const Operation refused =
      spaces[1].put_value(GlobalPtr<int>(0, 999, 0, 1, 0), 1,
                          {.at_target = AtTarget::call(here.pack<&look_at>(Rank{0}, GlobalPtr<int>{}, 3))});
  EXPECT_EQ(spaces.outcome(refused).status, Status::not_found);
  spaces.job().run(50);
  EXPECT_EQ(seen_by_call, 7) << "nothing runs behind what did not arrive";
}

TEST(GlobalSpace, a_function_tells_the_target_from_progress) {
  Spaces spaces(with(2, GpuChoice::none));
  GlobalSegment& heap = spaces.keep(spaces[0].create(MemoryKind::host, 4096));
  const GlobalPtr<int> at = heap.allocate<int>();
  EXPECT_TRUE(spaces.outcome(spaces[1].reach(at)).ok());
  int told = 0;
  const Operation put = spaces[1].put_value(at, 5, {.at_target = AtTarget::by([&] {
                                                      EXPECT_EQ(*heap.local(at), 5) << "visible by now";
                                                      ++told;
                                                    })});
  EXPECT_EQ(told, 0) << "never inside the post";
  EXPECT_TRUE(spaces.outcome(put).ok());
  EXPECT_EQ(told, 1);
  const Operation failed =
      spaces[1].put_value(at, 5, {.at_target = AtTarget::by([] { throw Error(Status::limit_reached, "no room"); })});
  EXPECT_EQ(spaces.outcome(failed).status, Status::limit_reached);
}

TEST(GlobalSpace, what_waits_for_an_answer_can_be_withdrawn_and_ends_with_the_space) {
  InProcessJob job(with(2, GpuChoice::none));
  auto here = std::make_unique<GlobalSpace>(job.rank(1));
  GlobalSpace there(job.rank(0));
  const GlobalSegment heap = there.create(MemoryKind::host, 4096);
  Operation given_up = here->put_value(heap.begin().as<int>(), 1);
  given_up.op().cancel();
  EXPECT_EQ(job.outcome(given_up).status, Status::canceled);
  auto abandoned = std::make_unique<Operation>(Moment::delivered,
                                               [&](Op& op) noexcept { return here->post_reach(heap.begin(), op); });
  abandoned.reset();
  const GlobalSegment unknown = there.create(MemoryKind::host, 4096);
  const Operation waits = here->reach(unknown.begin());
  EXPECT_FALSE(waits.done());
  here.reset();
  EXPECT_EQ(job.outcome(waits).status, Status::canceled);
}

TEST(GlobalSpace, fences_come_behind_all_that_was_put) {
  Spaces spaces(with(2));
  GlobalSegment& device = spaces.keep(spaces[0].create(MemoryKind::emulated, 8 << 20));
  const GlobalPtr<std::byte> row = device.begin();
  EXPECT_TRUE(spaces.outcome(spaces[1].reach(row)).ok());
  const std::vector<std::byte> image = pattern(4 << 20, 5);
  Op first, second;  // of which nobody asks whether they are visible
  ASSERT_LE(spaces[1].post_put(row, std::span(image), first), Status::in_progress);
  ASSERT_LE(spaces[1].post_put(row + (4 << 20), std::span(image), second), Status::in_progress);
  const Operation fence = spaces[1].fence(Rank{0});
  EXPECT_TRUE(spaces.outcome(fence).ok());
  std::vector<std::byte> seen(8 << 20);
  spaces.job().rank(0).copy(Buffer(std::span(seen)), device.memory());
  EXPECT_EQ(std::memcmp(seen.data(), image.data(), image.size()), 0);
  EXPECT_EQ(std::memcmp(seen.data() + image.size(), image.data(), image.size()), 0);
  EXPECT_EQ(spaces.outcome(spaces[1].fence(Rank{7})).status, Status::invalid_argument);
  EXPECT_TRUE(spaces.outcome(spaces[1].fence(Rank{1})).ok()) << "nothing is under way";
}

TEST(GlobalSpace, streams_copy_and_tell) {
  Spaces spaces(with(2));
  GlobalSegment& device = spaces.keep(spaces[0].create(MemoryKind::emulated, 1 << 20));
  const GlobalPtr<std::byte> row = device.allocate<std::byte>(1 << 16);
  const GlobalPtr<std::uint64_t> flag = device.allocate<std::uint64_t>();
  Stream stream = spaces.job().rank(1).device().create_stream();
  Memory source = spaces.job().rank(1).allocate(MemoryKind::emulated, 1 << 16);
  const std::vector<std::byte> image = pattern(1 << 16, 6);
  spaces.job().rank(1).copy(source, std::span(image));
  EXPECT_EQ(spaces[1].enqueue_put(stream, row, source), Status::not_supported) << "not reached yet";
  EXPECT_TRUE(spaces.outcome(spaces[1].reach(row)).ok());
  ASSERT_EQ(spaces[1].enqueue_put(stream, row, source), Status::ok);
  ASSERT_EQ(spaces[1].enqueue_set(stream, flag, 4), Status::ok);
  Stream waits = spaces.job().rank(0).device().create_stream();
  Memory seen = spaces.job().rank(0).allocate(MemoryKind::emulated, 1 << 16);
  ASSERT_EQ(spaces[0].enqueue_wait(waits, flag, 4), Status::ok) << "a stream of the target";
  ASSERT_EQ(spaces[0].enqueue_get(waits, row, seen), Status::ok);
  ASSERT_EQ(waits.synchronize(), Status::ok);
  std::vector<std::byte> copy(1 << 16);
  spaces.job().rank(0).copy(Buffer(std::span(copy)), seen);
  EXPECT_EQ(copy, image);
  EXPECT_EQ(spaces[0].enqueue_set(stream, (row + 4).as<std::uint64_t>(), 1), Status::invalid_argument) << "misaligned";
}

}  // namespace
}  // namespace brant
