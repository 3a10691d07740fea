// Atomics between ranks of one process: on memory that is mapped, over the loopback network, and by emulated devices.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "port/wire/faulty/faulty.h"
#include "support/atomic_cases.h"
#include "support/emulated_network.h"
#include "support/faulty_device.h"
#include "unit/rma/rma_pair.h"

namespace brant {
namespace {

using test::AtomicCase;
using test::Ground;
using test::InProcessJob;
using test::JobOptions;
using test::kGrounds;
using test::puts;
using test::Space;

constexpr auto kCount = Atomic::of<std::uint64_t>(AtomicOp::add, 1);

JobOptions on_emulated_devices() { return test::ranks(2, GpuChoice::emulated); }

/// A segment of rank 0 that rank 1 uses.
struct AtomicsPair {
  AtomicsPair(const JobOptions& options, MemoryKind kind, std::size_t bytes, bool of_heap = false, int user = 1)
      : job(options),
        memory(job.rank(0), kind, bytes, of_heap),
        segment(expose(job.rank(0), memory.whole())),
        there(job.rank(user), Rank{0}, segment.ticket()) {
    memory.fill(std::vector<std::byte>(bytes));
  }

  [[nodiscard]] std::uint64_t word(std::size_t index) const {
    const auto image = memory.image();
    std::uint64_t value = 0;
    std::memcpy(&value, image.data() + index * sizeof(value), sizeof(value));
    return value;
  }
  Status once(std::uint64_t offset, const Atomic& what, void* before = nullptr, Path path = Path::automatic) {
    const Operation operation(Moment::delivered,
                              [&](Op& op) noexcept { return there.post_atomic(offset, what, op, before, path); });
    const OpResult result = job.outcome(operation);
    EXPECT_EQ(result.bytes, result.ok() ? what.bytes() : 0u);
    return result.status;
  }

  InProcessJob job;
  Space memory;
  Segment segment;
  RemoteSegment there;
};

struct AtomicsCase {
  Ground ground;
  int user;
};

/// Nothing of a device is mapped by others: the network takes it, and its owner performs atomics.
JobOptions on_devices_apart() {
  JobOptions options = on_emulated_devices();
  options.exportable = [](const port::PointerInfo&) { return false; };
  options.network = test::network_of_emulated_devices();
  return options;
}

class RmaAtomicsKinds : public testing::TestWithParam<AtomicsCase> {
 protected:
  [[nodiscard]] static Path expected_path() {
    if (GetParam().ground.kind == MemoryKind::emulated) return Path::kernel;
    return GetParam().ground.of_heap && GetParam().user != 0 ? Path::ucx : Path::shm;
  }
};

/// Each case has a word of its own, of 4 bytes at the low or the high half of 8.
TEST_P(RmaAtomicsKinds, every_operation_does_what_the_model_says) {
  const std::vector<AtomicCase> cases = test::atomic_cases();
  const auto offset = [&](std::size_t i) { return i * 8 + (cases[i].what.bytes() == 4 && i % 2 == 1 ? 4 : 0); };
  AtomicsPair pair(on_emulated_devices(), GetParam().ground.kind, cases.size() * 8, GetParam().ground.of_heap,
                   GetParam().user);
  std::vector<std::byte> image(cases.size() * 8, std::byte{0x5a});
  for (std::size_t i = 0; i < cases.size(); ++i)
    std::memcpy(image.data() + offset(i), &cases[i].before, cases[i].what.bytes());
  pair.memory.fill(image);

  const std::uint64_t counted = puts(pair.job, GetParam().user, expected_path());
  std::deque<Op> ops(cases.size());
  std::vector<std::uint64_t> before(cases.size(), 0x77777777'77777777);
  Counter counter;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ops[i].delivered = counter.sink();
    const bool tells = cases[i].what.operation != AtomicOp::store;
    counter.track(pair.there.post_atomic(offset(i), cases[i].what, ops[i], tells ? &before[i] : nullptr), ops[i]);
  }
  ASSERT_TRUE(pair.job.run_until([&] { return counter.pending() == 0; }));
  ASSERT_TRUE(counter.result().ok()) << status_name(counter.result().status);
  EXPECT_EQ(puts(pair.job, GetParam().user, expected_path()), counted + cases.size());
  EXPECT_EQ(pair.there.pending(), 0u);

  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::memcpy(image.data() + offset(i), &cases[i].after, cases[i].what.bytes());
    std::uint64_t told = 0x77777777'77777777;
    if (cases[i].what.operation != AtomicOp::store) std::memcpy(&told, &cases[i].before, cases[i].what.bytes());
    ASSERT_EQ(before[i], told) << cases[i].name;
  }
  const std::vector<std::byte> after = pair.memory.image();
  for (std::size_t i = 0; i < cases.size(); ++i)
    ASSERT_EQ(std::memcmp(after.data() + i * 8, image.data() + i * 8, 8), 0) << cases[i].name;
}

TEST_P(RmaAtomicsKinds, many_on_one_word_lose_none_and_none_is_told_twice) {
  AtomicsPair pair(on_emulated_devices(), GetParam().ground.kind, 4096, GetParam().ground.of_heap, GetParam().user);
  constexpr std::size_t kTimes = 1000;
  std::deque<Op> ops(kTimes);
  std::vector<std::uint64_t> told(kTimes);
  Counter counter;
  for (std::size_t i = 0; i < kTimes; ++i) {
    ops[i].delivered = counter.sink();
    counter.track(pair.there.post_atomic(24, kCount, ops[i], &told[i]), ops[i]);
    if (i % 100 == 0) pair.job.run(1);
  }
  ASSERT_TRUE(pair.job.run_until([&] { return counter.pending() == 0; }));
  ASSERT_TRUE(counter.result().ok());
  EXPECT_EQ(counter.result().bytes, kTimes * 8);
  EXPECT_EQ(pair.word(3), kTimes);
  std::sort(told.begin(), told.end());
  for (std::size_t i = 0; i < kTimes; ++i) ASSERT_EQ(told[i], i);
}

TEST_P(RmaAtomicsKinds, what_makes_no_sense_is_refused_and_changes_nothing) {
  AtomicsPair pair(on_emulated_devices(), GetParam().ground.kind, 4096, GetParam().ground.of_heap, GetParam().user);
  const auto image = test::pattern(4096, 3);
  pair.memory.fill(image);
  std::uint64_t before = 5;
  const auto refused = [&](std::uint64_t offset, const Atomic& what) {
    Op op;
    return pair.there.post_atomic(offset, what, op, &before) == Status::invalid_argument;
  };
  EXPECT_TRUE(refused(4, kCount)) << "not aligned";
  EXPECT_TRUE(refused(2, Atomic::of<float>(AtomicOp::add, 1)));
  EXPECT_TRUE(refused(4096, kCount)) << "outside";
  EXPECT_TRUE(refused(4096, Atomic::of<int>(AtomicOp::add, 1)));
  EXPECT_TRUE(refused(UINT64_MAX - 7, kCount));
  EXPECT_TRUE(refused(0, Atomic::of<std::uint64_t>(AtomicOp::store, 1))) << "a store tells nothing";
  for (const Atomic& none : test::atomics_that_do_not_exist()) EXPECT_TRUE(refused(0, none));
  EXPECT_EQ(pair.memory.image(), image);
  EXPECT_EQ(before, 5u);
  EXPECT_EQ(pair.there.pending(), 0u);
  pair.there.close();
  EXPECT_TRUE(refused(0, kCount)) << "closed";
}

std::vector<AtomicsCase> atomics_cases() {
  std::vector<AtomicsCase> cases;
  for (const Ground& ground : kGrounds) {
    for (const int user : {0, 1}) cases.push_back({ground, user});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Kinds, RmaAtomicsKinds, testing::ValuesIn(atomics_cases()), [](const auto& each) {
  return std::string(each.param.ground.name) + (each.param.user == 0 ? "_own" : "");
});

TEST(RmaAtomics, a_word_is_aligned_by_its_address_and_not_by_its_offset) {
  InProcessJob job;
  Space memory(job.rank(0), MemoryKind::host, 4096);
  const Segment segment = expose(job.rank(0), memory.part(4, 4000));
  RemoteSegment there(job.rank(1), Rank{0}, segment.ticket());
  Op op;
  EXPECT_EQ(there.post_atomic(0, kCount, op), Status::invalid_argument);
  EXPECT_EQ(there.post_atomic(4, kCount, op), Status::ok);
  EXPECT_EQ(there.post_atomic(0, Atomic::of<int>(AtomicOp::add, 1), op), Status::ok);
}

TEST(RmaAtomics, on_mapped_host_memory_they_are_done_within_the_call) {
  AtomicsPair pair({}, MemoryKind::host, 65536);
  const FetchOperation<std::uint64_t> first = pair.there.fetch_add<std::uint64_t>(8, 5);
  ASSERT_TRUE(first.done());
  EXPECT_EQ(first.fetched().before, 0u);
  const FetchOperation<std::uint64_t> second = pair.there.compare_swap<std::uint64_t>(8, 5, 9);
  EXPECT_EQ(second.fetched().value(), 5u);
  EXPECT_EQ(pair.word(1), 9u);
  EXPECT_EQ(pair.there.pending(), 0u);
}

TEST(RmaAtomics, a_coroutine_is_told_the_value_before) {
  for (const Ground& ground : kGrounds) {
    AtomicsPair pair(on_emulated_devices(), ground.kind, 4096, ground.of_heap);
    const auto program = [&]() -> Task<double> {
      static_cast<void>(
          (co_await pair.there.atomic(16, Atomic::of<double>(AtomicOp::store, 2.5))).or_throw("the store"));
      const Fetched<double> sum = co_await pair.there.fetch_add<double>(16, 0.25);
      EXPECT_TRUE(sum.ok());
      EXPECT_EQ(sum.bytes, 8u);
      EXPECT_EQ(sum.before, 2.5);
      co_return (co_await pair.there.fetch<double>(16, AtomicOp::load)).value();
    };
    EXPECT_EQ(pair.job.rank(1).run(program()), 2.75) << ground.name;
    const auto wrong = [&]() -> Task<void> {
      static_cast<void>((co_await pair.there.fetch_add<double>(4, 1)).or_throw("no such word"));
    };
    EXPECT_THROW(pair.job.rank(1).run(wrong()), Error);
  }
}

TEST(RmaAtomics, forced_paths_are_taken_or_refused) {
  AtomicsPair mapped({}, MemoryKind::host, 65536), heap({}, MemoryKind::host, 65536, true);
  AtomicsPair device(on_emulated_devices(), MemoryKind::emulated, 4096);
  EXPECT_EQ(mapped.once(0, kCount, nullptr, Path::ucx), Status::ok);
  EXPECT_EQ(mapped.once(0, kCount, nullptr, Path::shm), Status::ok);
  EXPECT_EQ(mapped.once(0, kCount, nullptr, Path::staged), Status::ok) << "that concerns copies";
  EXPECT_EQ(puts(mapped.job, 1, Path::ucx), 1u);
  EXPECT_EQ(puts(mapped.job, 1, Path::shm), 2u);
  EXPECT_EQ(mapped.word(0), 3u);
  EXPECT_EQ(heap.once(0, kCount, nullptr, Path::shm), Status::not_supported);
  EXPECT_EQ(heap.once(0, kCount, nullptr, Path::ucx), Status::ok);
  EXPECT_EQ(device.once(0, kCount, nullptr, Path::shm), Status::not_supported);
  EXPECT_EQ(device.once(0, kCount, nullptr, Path::ucx), Status::not_supported);
  EXPECT_EQ(device.once(0, kCount, nullptr, Path::copy_engine), Status::ok);
  JobOptions forced;
  forced.runtime.path = Path::ucx;  // as BRANT_PATH does
  AtomicsPair all(forced, MemoryKind::host, 65536);
  EXPECT_EQ(all.once(0, kCount), Status::ok);
  EXPECT_EQ(puts(all.job, 1, Path::ucx), 1u);
}

TEST(RmaAtomics, those_on_memory_whose_file_has_not_come_wait_for_it) {
  JobOptions options = on_emulated_devices();
  options.files_only = true;
  options.links = true;  // by which it is handed over
  AtomicsPair pair(options, MemoryKind::emulated, 4096);
  ASSERT_EQ(pair.there.device_pointer(), nullptr) << "it is on its way";
  const FetchOperation<std::uint64_t> one = pair.there.fetch_add<std::uint64_t>(8, 1),
                                      other = pair.there.fetch_add<std::uint64_t>(16, 1);
  EXPECT_FALSE(one.done() || other.done());
  EXPECT_EQ(pair.there.pending(), 2u);
  EXPECT_TRUE(pair.job.outcome(one).ok() && pair.job.outcome(other).ok());
  EXPECT_NE(pair.there.device_pointer(), nullptr);
  EXPECT_EQ(pair.word(1), 1u);
  EXPECT_EQ(pair.word(2), 1u);
}

TEST(RmaAtomics, those_that_waited_for_a_file_wait_for_room_as_well) {
  JobOptions options = on_emulated_devices();
  options.files_only = true;
  options.links = true;  // by which it is handed over
  AtomicsPair pair(options, MemoryKind::emulated, 4096);
  std::deque<Op> ops(5000);
  Counter counter;
  for (Op& op : ops) {
    op.delivered = counter.sink();
    const Status posted = pair.there.post_atomic(0, kCount, op);
    ASSERT_EQ(posted, Status::in_progress);
    counter.track(posted, op);
  }
  ASSERT_TRUE(pair.job.run_until([&] { return counter.pending() == 0; }));
  EXPECT_TRUE(counter.result().ok()) << status_name(counter.result().status);
  EXPECT_EQ(pair.word(0), ops.size());
}

TEST(RmaAtomics, more_than_a_device_takes_at_once_are_refused_until_some_have_ended) {
  AtomicsPair pair(on_emulated_devices(), MemoryKind::emulated, 4096);
  std::deque<Op> ops(5000);
  Counter counter;
  std::size_t begun = 0;
  for (Op& op : ops) {
    op.delivered = counter.sink();
    const Status posted = pair.there.post_atomic(0, kCount, op);
    if (posted == Status::limit_reached) break;
    counter.track(posted, op);
    ++begun;
  }
  EXPECT_EQ(begun, 4096u);
  ASSERT_TRUE(pair.job.run_until([&] { return counter.pending() == 0; }));
  EXPECT_TRUE(counter.result().ok());
  EXPECT_EQ(pair.once(0, kCount), Status::ok);
  EXPECT_EQ(pair.word(0), begun + 1);
}

TEST(RmaAtomics, a_device_that_fails_ends_them_with_its_error) {
  test::DeviceFaults faults;
  JobOptions options = on_emulated_devices();
  options.wrap_device = [&](int rank, std::unique_ptr<port::Device> device) {
    return rank == 1 ? test::make_faulty(std::move(device), faults) : std::move(device);
  };
  AtomicsPair pair(options, MemoryKind::emulated, 4096);
  EXPECT_EQ(pair.once(0, kCount), Status::ok);
  faults.events = Status::device_failed;
  std::uint64_t before = 77;
  EXPECT_EQ(pair.once(0, kCount, &before), Status::device_failed);
  EXPECT_EQ(before, 77u) << "nothing is told";
  faults.events = Status::ok;
  EXPECT_EQ(pair.once(0, kCount), Status::ok);
}

TEST(RmaAtomics, one_that_nobody_waits_for_goes_on_and_writes_nowhere) {
  for (const bool on_device : {false, true}) {
    JobOptions options = on_emulated_devices();
    options.network = {.seed = 3, .delay_min = 5, .delay_max = 9};
    AtomicsPair pair(options, on_device ? MemoryKind::emulated : MemoryKind::host, 4096, !on_device);
    auto operation = std::make_unique<FetchOperation<std::uint64_t>>(
        [&](Op& op, std::uint64_t* before) noexcept { return pair.there.post_atomic(8, kCount, op, before); });
    ASSERT_FALSE(operation->done());
    operation->op().cancel();
    EXPECT_FALSE(operation->done()) << "it cannot be taken back";
    operation.reset();  // from here on the sanitizer watches
    EXPECT_EQ(pair.there.pending(), 1u);
    ASSERT_TRUE(pair.job.run_until([&] { return pair.there.pending() == 0; }));
    EXPECT_EQ(pair.word(1), 1u);
  }
}

TEST(RmaAtomics, closing_under_way_lets_the_last_ones_end) {
  for (const bool on_device : {false, true}) {
    JobOptions options = on_emulated_devices();
    options.network = {.seed = 3, .delay_min = 5, .delay_max = 9};
    AtomicsPair pair(options, on_device ? MemoryKind::emulated : MemoryKind::host, 4096, !on_device);
    const FetchOperation<std::uint64_t> count = pair.there.fetch_add<std::uint64_t>(8, 1);
    EXPECT_FALSE(count.done());
    pair.there.close();
    EXPECT_TRUE(pair.job.outcome(count).ok());
    EXPECT_EQ(pair.word(1), 1u);
  }
}

TEST(AskedAtomics, do_what_the_model_says) {
  const std::vector<AtomicCase> cases = test::atomic_cases();
  AtomicsPair pair(on_devices_apart(), MemoryKind::emulated, cases.size() * 8);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    std::vector<std::byte> image(cases.size() * 8, std::byte{0x5a});
    std::memcpy(image.data() + i * 8, &cases[i].before, cases[i].what.bytes());
    pair.memory.fill(image);
    std::uint64_t before = 0;
    const bool tells = cases[i].what.operation != AtomicOp::store;
    ASSERT_EQ(pair.once(i * 8, cases[i].what, tells ? &before : nullptr), Status::ok);
    EXPECT_TRUE(!tells || std::memcmp(&before, &cases[i].before, cases[i].what.bytes()) == 0);
    std::memcpy(image.data() + i * 8, &cases[i].after, cases[i].what.bytes());
    EXPECT_EQ(pair.memory.image(), image);
  }
  EXPECT_EQ(puts(pair.job, 1, Path::kernel), cases.size());
  EXPECT_EQ(pair.once(4, kCount), Status::invalid_argument);
  EXPECT_EQ(pair.once(0, kCount, nullptr, Path::shm), Status::not_supported);
}

/// More than a device performs at a time: the owner keeps them until there is room.
TEST(AskedAtomics, of_which_there_are_many_are_all_performed) {
  constexpr std::size_t kMany = 10'000;
  AtomicsPair pair(on_devices_apart(), MemoryKind::emulated, 64);
  std::deque<Op> ops(kMany);
  for (Op& op : ops) ASSERT_EQ(pair.there.post_atomic(8, kCount, op), Status::in_progress);
  const Operation fence(Moment::delivered, [&](Op& op) noexcept { return post_fence(pair.job.rank(1), Rank{0}, op); });
  EXPECT_FALSE(fence.done());
  EXPECT_TRUE(pair.job.outcome(fence).ok());
  EXPECT_EQ(pair.word(1), kMany) << "a fence comes behind them";
  ASSERT_TRUE(pair.job.run_until([&] { return std::ranges::none_of(ops, &Op::pending); }));
  for (const Op& op : ops) ASSERT_EQ(op.result.status, Status::ok);
}

TEST(AskedAtomics, wait_for_progress_of_the_owner_and_end_where_its_segment_is_closed) {
  AtomicsPair pair(on_devices_apart(), MemoryKind::emulated, 64);
  const FetchOperation<std::uint64_t> count = pair.there.fetch_add<std::uint64_t>(8, 1);
  for (int turn = 0; turn < 1000; ++turn) static_cast<void>(pair.job.rank(1).worker().progress());
  EXPECT_FALSE(count.done()) << "the owner makes no progress";
  pair.segment.close();
  EXPECT_EQ(pair.job.outcome(count).status, Status::not_found);
  EXPECT_EQ(pair.word(1), 0u);
}

/// The second question shows that the connection has failed; what has been asked before is not answered any more.
TEST(AskedAtomics, end_where_their_owner_is_lost) {
  JobOptions options = on_devices_apart();
  options.wrap = [](int rank, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
    port::FaultPolicy policy;
    if (rank == 1)
      policy.rules = {{.point = port::FaultPoint::am_send,
                       .effect = port::FaultEffect::fail,
                       .nth = 2,
                       .status = Status::io_error}};
    return std::make_unique<port::FaultyWire>(std::move(wire), policy);
  };
  AtomicsPair pair(options, MemoryKind::emulated, 64);
  const FetchOperation<std::uint64_t> asked = pair.there.fetch_add<std::uint64_t>(8, 1);
  EXPECT_FALSE(asked.done());
  Op failing;
  const Status posted = pair.there.post_atomic(8, kCount, failing);
  const auto alone = [&](const auto& done) {
    for (int turn = 0; turn < 1000 && !done(); ++turn) static_cast<void>(pair.job.rank(1).worker().progress());
  };
  alone([&] { return asked.done() && !failing.pending(); });
  ASSERT_TRUE(asked.done());
  EXPECT_EQ(asked.fetched().status, Status::peer_lost);
  EXPECT_EQ(posted == Status::in_progress ? failing.result.status : posted, Status::peer_lost);
  EXPECT_EQ(pair.there.pending(), 0u);
}

TEST(RmaAtomics, a_segment_closed_by_its_owner_refuses_where_that_is_noticed) {
  AtomicsPair heap({}, MemoryKind::host, 4096, true), own({}, MemoryKind::host, 65536, false, 0);
  heap.segment.close();
  own.segment.close();
  EXPECT_NE(heap.once(0, kCount), Status::ok);
  EXPECT_EQ(own.once(0, kCount), Status::not_found);
}

TEST(RmaAtomics, a_failure_of_the_network_ends_them) {
  JobOptions options;
  options.wrap = [&](int, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
    port::FaultPolicy policy;
    policy.rules = {
        {.point = port::FaultPoint::atomic, .effect = port::FaultEffect::fail, .nth = 2, .status = Status::io_error}};
    return std::make_unique<port::FaultyWire>(std::move(wire), policy);
  };
  AtomicsPair pair(options, MemoryKind::host, 4096, true);
  EXPECT_EQ(pair.once(0, kCount), Status::ok);
  EXPECT_EQ(pair.once(0, kCount), Status::peer_lost);
  pair.job.run(3);
  EXPECT_EQ(pair.once(0, kCount), Status::peer_lost) << "the connection was given up";
}

}  // namespace
}  // namespace brant
