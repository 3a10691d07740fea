// Puts and gets between ranks of one process over the loopback network, with mapped memory and without.

#include "brant/ops/rma.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "core/engine.h"
#include "port/memory.h"
#include "port/wire/faulty/faulty.h"
#include "support/effort.h"
#include "unit/rma/rma_pair.h"

namespace brant {
namespace {

using test::gets;
using test::Ground;
using test::InProcessJob;
using test::JobOptions;
using test::kGrounds;
using test::pattern;
using test::puts;
using test::Space;

constexpr std::size_t kLarge = (test::effort<std::size_t>(3, 1) << 20) + 5;  // more than one piece of the mover
constexpr std::size_t kFront = 3;                                            // offsets that align with nothing

JobOptions with(GpuChoice gpu) {
  JobOptions options;
  options.gpu = gpu;
  return options;
}

/// Puts and gets of every path that can serve, between memory of two kinds.
struct Case {
  Ground here;
  Ground there;
  int owner;  ///< 0; or 1, the rank that puts and gets.
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const int owner : {0, 1}) {
    for (const Ground& here : kGrounds) {
      for (const Ground& there : kGrounds) cases.push_back({here, there, owner});
    }
  }
  return cases;
}

/// A segment of `owner` and memory of rank 1, filled before and compared after each transfer.
class RmaKinds : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t kWhole = kLarge + 2 * kFront;
  static constexpr std::size_t kAround = 100;

  /// The bytes of `from` are where they should be in `to`, and what lies around them is as it was.
  static void expect_copied(const Space& to, std::size_t at, const std::vector<std::byte>& old, std::size_t from_at,
                            const std::vector<std::byte>& from, std::size_t bytes) {
    const std::size_t looked_at = std::min(at + bytes + kAround, to.whole().bytes);
    const std::vector<std::byte> image = to.image(looked_at);
    EXPECT_EQ(std::memcmp(image.data() + at, from.data() + from_at, bytes), 0) << "wrong bytes";
    EXPECT_EQ(std::memcmp(image.data(), old.data(), at), 0) << "before it";
    EXPECT_EQ(std::memcmp(image.data() + at + bytes, old.data() + at + bytes, looked_at - at - bytes), 0) << "behind";
  }

  /// False: the path cannot serve.
  bool transfer(RmaDirection direction, Path path, std::size_t bytes) {
    if (!there_.path_of(GetParam().here.kind, bytes, direction, {.path = path})) return false;
    segment_memory_.fill(kImageThere, kFront + bytes + kAround);
    local_.fill(kImageHere, bytes + kAround);
    const bool put = direction == RmaDirection::put;
    const Buffer local = local_.part(0, bytes);
    const Operation operation =
        put ? there_.put(kFront, local, {.path = path}) : there_.get(kFront, local, {.path = path});
    const OpResult result = job_.outcome(operation);
    EXPECT_EQ(result.status, Status::ok) << status_name(result.status);
    EXPECT_EQ(result.bytes, bytes);
    if (put) {
      expect_copied(segment_memory_, kFront, kImageThere, 0, kImageHere, bytes);
    } else {
      expect_copied(local_, 0, kImageHere, kFront, kImageThere, bytes);
    }
    return true;
  }

  static inline const std::vector<std::byte> kImageThere = pattern(kWhole, 1), kImageHere = pattern(kLarge, 2);

  InProcessJob job_{with(GpuChoice::emulated)};
  Space segment_memory_{job_.rank(GetParam().owner), GetParam().there.kind, kWhole, GetParam().there.of_heap};
  Space local_{job_.rank(1), GetParam().here.kind, kLarge, GetParam().here.of_heap};
  Segment segment_ = expose(job_.rank(GetParam().owner), segment_memory_.whole());
  RemoteSegment there_{job_.rank(1), Rank{GetParam().owner}, segment_.ticket()};
};

TEST_P(RmaKinds, bytes_of_every_size_arrive_whole_on_every_path) {
  EXPECT_EQ(there_.size(), kWhole);
  EXPECT_EQ(there_.kind(), GetParam().there.kind);
  EXPECT_EQ(there_.rank(), Rank{GetParam().owner});
  int served = 0;
  for (const Path path : {Path::automatic, Path::shm, Path::ucx, Path::copy_engine, Path::courier, Path::staged}) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, std::size_t{65536}, kLarge}) {
      for (const RmaDirection direction : {RmaDirection::put, RmaDirection::get}) {
        SCOPED_TRACE(std::string(direction == RmaDirection::put ? "put " : "get ") + std::string(path_name(path)) +
                     " " + std::to_string(bytes));
        if (transfer(direction, path, bytes)) ++served;
      }
    }
  }
  EXPECT_GE(served, 20) << "by choice and staged at least";
  EXPECT_EQ(there_.pending(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, RmaKinds, testing::ValuesIn(all_cases()), [](const auto& each) {
  return std::string(each.param.here.name) + "_and_" + each.param.there.name + (each.param.owner == 1 ? "_own" : "");
});

/// Rank 0 owns, rank 1 uses.
struct Pair {
  Pair(const JobOptions& options, MemoryKind kind, std::size_t bytes, bool of_heap = false)
      : job(options),
        memory(job.rank(0), kind, bytes, of_heap),
        segment(expose(job.rank(0), memory.whole())),
        there(job.rank(1), Rank{0}, segment.ticket()) {}

  InProcessJob job;
  Space memory;
  Segment segment;
  RemoteSegment there;
};

TEST(Rma, the_path_follows_from_what_is_mapped) {
  Pair mapped({}, MemoryKind::host, 65536), heap({}, MemoryKind::host, 65536, true);
  EXPECT_EQ(*mapped.there.path_of(MemoryKind::host, 8, RmaDirection::put), Path::shm);
  EXPECT_EQ(*mapped.there.path_of(MemoryKind::host, 65536, RmaDirection::get), Path::shm);
  EXPECT_EQ(*heap.there.path_of(MemoryKind::host, 8, RmaDirection::put), Path::ucx);
  Pair device(with(GpuChoice::emulated), MemoryKind::emulated, 65536);
  EXPECT_EQ(*device.there.path_of(MemoryKind::emulated, 8, RmaDirection::put), test::small_mapped_path());
  EXPECT_EQ(*device.there.path_of(MemoryKind::emulated, 8 << 20, RmaDirection::get), Path::copy_engine);
  EXPECT_EQ(*device.there.path_of(MemoryKind::pinned, 8, RmaDirection::put), test::small_mapped_path());
  EXPECT_EQ(*device.there.path_of(MemoryKind::pinned, 65536, RmaDirection::put), Path::copy_engine);
  EXPECT_EQ(*device.there.path_of(MemoryKind::host, 8, RmaDirection::put), Path::staged);
  Pair shared(with(GpuChoice::emulated), MemoryKind::host, 65536);
  EXPECT_EQ(*shared.there.path_of(MemoryKind::emulated, 8, RmaDirection::put), test::small_mapped_path());
  EXPECT_EQ(*shared.there.path_of(MemoryKind::emulated, 8, RmaDirection::get), test::small_mapped_path());
  EXPECT_EQ(*shared.there.path_of(MemoryKind::emulated, 8192, RmaDirection::get), Path::copy_engine);
}

TEST(Rma, a_word_behind_a_put_is_set_by_the_courier_or_left_alone) {
  Pair device(with(GpuChoice::emulated), MemoryKind::emulated, 65536);
  const Space flags(device.job.rank(0), MemoryKind::host, 65536), source(device.job.rank(1), MemoryKind::emulated, 64);
  auto* const word = static_cast<std::uint64_t*>(flags.whole().data);
  const Segment exposed = expose(device.job.rank(0), flags.whole());
  RemoteSegment flags_there(device.job.rank(1), Rank{0}, exposed.ticket());
  auto* const by_device = static_cast<std::uint64_t*>(flags_there.device_pointer());
  ASSERT_NE(by_device, nullptr);
  *word = 0;
  unsigned set = 0;
  // It may come late where others keep the cores.
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto may_come = [&] {
    return test::small_mapped_path() == Path::courier && set == 0 && std::chrono::steady_clock::now() < late;
  };
  for (std::uint32_t turn = 1; turn <= 200 || may_come(); ++turn) {
    bool was_set = true;
    const RmaOptions options{.path = Path::automatic, .shapes = nullptr, .word_behind = {by_device, turn, &was_set}};
    const std::uint64_t before = *word;
    ASSERT_EQ(device.job.outcome(device.there.put(0, source.part(0, 8), options)).status, Status::ok);
    ASSERT_EQ(std::atomic_ref(*word).load(), was_set ? turn : before);
    set += was_set ? 1 : 0;
  }
  if (test::small_mapped_path() == Path::courier) {
    EXPECT_GT(set, 0u) << "the courier has come";
  } else {
    EXPECT_EQ(set, 0u);
  }
  bool was_set = true;
  const Space here(device.job.rank(1), MemoryKind::host, 65536);
  const RmaOptions options{.path = Path::automatic, .shapes = nullptr, .word_behind = {by_device, 777, &was_set}};
  EXPECT_EQ(device.job.outcome(flags_there.put(64, here.part(0, 8), options)).status, Status::ok);
  EXPECT_FALSE(was_set) << "the CPU copied";
  EXPECT_NE(*word, 777u);
}

TEST(Rma, kernels_reach_a_segment_that_is_mapped) {
  Pair device(with(GpuChoice::emulated), MemoryKind::emulated, 65536);
  EXPECT_NE(device.there.device_pointer(), nullptr);
  Pair shared(with(GpuChoice::emulated), MemoryKind::host, 65536);
  EXPECT_NE(shared.there.device_pointer(), nullptr);
  Pair heap(with(GpuChoice::emulated), MemoryKind::host, 65536, true);
  EXPECT_EQ(heap.there.device_pointer(), nullptr) << "it cannot be mapped";
  device.there.close();
  EXPECT_EQ(device.there.device_pointer(), nullptr);
}

TEST(Rma, a_path_that_cannot_serve_is_refused) {
  Pair heap(with(GpuChoice::emulated), MemoryKind::host, 65536, true);
  Pair device(with(GpuChoice::emulated), MemoryKind::emulated, 65536);
  std::byte byte{1};
  const auto refused = [&](RemoteSegment& there, Path path) {
    Op op;
    return there.post_put(0, ConstBuffer(&byte, 1, MemoryKind::host), op, {.path = path}) == Status::not_supported;
  };
  EXPECT_TRUE(refused(heap.there, Path::shm));
  EXPECT_TRUE(refused(heap.there, Path::copy_engine));
  EXPECT_TRUE(refused(heap.there, Path::kernel));
  EXPECT_TRUE(refused(device.there, Path::shm));
  EXPECT_TRUE(refused(device.there, Path::ucx));
  EXPECT_TRUE(refused(device.there, Path::copy_engine)) << "from pageable memory";
  EXPECT_TRUE(refused(device.there, Path::courier));
  JobOptions forced;
  forced.runtime.path = Path::shm;  // as BRANT_PATH does
  Pair all(forced, MemoryKind::host, 65536, true);
  EXPECT_TRUE(refused(all.there, Path::automatic));
  EXPECT_FALSE(refused(all.there, Path::ucx)) << "the call's own wish goes first";
}

TEST(Rma, mapped_host_memory_is_written_within_the_call) {
  Pair pair({}, MemoryKind::host, 1 << 20);
  const auto sent = pattern(1 << 20, 7);
  const Operation small = pair.there.put(0, ConstBuffer(sent.data(), 256 << 10, MemoryKind::host));
  EXPECT_TRUE(small.done());
  const Operation large = pair.there.put(0, ConstBuffer(sent.data(), sent.size(), MemoryKind::host));
  EXPECT_FALSE(large.done()) << "no call copies that much";
  for (int turn = 0; turn < 4 && !large.done(); ++turn) pair.job.rank(1).worker().progress();
  EXPECT_TRUE(large.done()) << "the owner takes no part";
  EXPECT_EQ(pair.memory.image(), sent);
  EXPECT_EQ(puts(pair.job, 1, Path::shm), 2u);
  EXPECT_EQ(pair.job.rank(1).worker().engine().counters().path(Path::shm).bytes_sent.read(), (256u << 10) + (1u << 20));
}

TEST(Rma, what_lies_outside_the_segment_is_refused) {
  for (const bool of_heap : {false, true}) {
    Pair pair({}, MemoryKind::host, 65536, of_heap);
    const auto before = pattern(65536, 3);
    pair.memory.fill(before);
    std::vector<std::byte> local(65537);
    const auto status = [&](std::uint64_t offset, std::size_t bytes) {
      Op put, get;
      const Status posted = pair.there.post_put(offset, ConstBuffer(local.data(), bytes), put);
      EXPECT_EQ(pair.there.post_get(offset, Buffer(local.data(), bytes), get), posted);
      return posted;
    };
    EXPECT_EQ(status(0, 65537), Status::invalid_argument);
    EXPECT_EQ(status(65535, 2), Status::invalid_argument);
    EXPECT_EQ(status(65537, 0), Status::invalid_argument);
    EXPECT_EQ(status(UINT64_MAX, 1), Status::invalid_argument);
    EXPECT_EQ(status(UINT64_MAX - 3, 8), Status::invalid_argument);
    EXPECT_EQ(status(65536, 0), Status::ok);
    EXPECT_EQ(pair.memory.image(), before);
    Op op;
    EXPECT_EQ(pair.there.post_put(0, ConstBuffer(nullptr, 8), op), Status::invalid_argument);
  }
}

TEST(Rma, memory_that_is_not_what_it_was_declared_is_refused) {
  Pair pair(with(GpuChoice::emulated), MemoryKind::emulated, 65536);
  int value = 0;
  Op op;
  EXPECT_EQ(pair.there.post_put(0, ConstBuffer(&value, sizeof(value), MemoryKind::emulated), op), Status::wrong_kind);
  EXPECT_THROW(static_cast<void>(expose(pair.job.rank(0), Buffer(&value, sizeof(value), MemoryKind::emulated))), Error);
  EXPECT_THROW(static_cast<void>(expose(pair.job.rank(0), Buffer(nullptr, 5))), Error);
  EXPECT_THROW(static_cast<void>(expose(pair.job.rank(0), Buffer(&value, 0))), Error);
}

TEST(Rma, two_moments_of_a_put_over_the_network) {
  JobOptions options;
  options.network = {.seed = 3, .delay_min = 5, .delay_max = 9};
  Pair pair(options, MemoryKind::host, 65536, true);
  const auto sent = pattern(65536, 5);
  Flag source_free, delivered;
  Op op;
  op.source_free = source_free.sink();
  op.delivered = delivered.sink();
  ASSERT_EQ(pair.there.post_put(0, std::span(sent), op), Status::in_progress);
  EXPECT_EQ(pair.there.pending(), 1u);
  ASSERT_TRUE(pair.job.run_until([&] { return source_free.done; }));
  EXPECT_FALSE(delivered.done) << "a flush follows";
  ASSERT_TRUE(pair.job.run_until([&] { return delivered.done; }));
  EXPECT_TRUE(delivered.result.ok());
  EXPECT_EQ(delivered.result.bytes, sent.size());
  EXPECT_EQ(pair.memory.image(), sent);
  EXPECT_EQ(pair.there.pending(), 0u);
}

TEST(Rma, a_window_of_puts_is_visible_when_each_says_so) {
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    JobOptions options;
    options.network = {.seed = seed, .delay_min = 0, .delay_max = 6};
    constexpr std::size_t kPuts = 200, kBytes = 100;
    Pair pair(options, MemoryKind::host, kPuts * kBytes, true);
    const auto sent = pattern(kPuts * kBytes, 5);
    std::vector<std::unique_ptr<Operation>> operations;
    for (std::size_t i = 0; i < kPuts; ++i) {
      operations.emplace_back(new Operation(pair.there.put(i * kBytes, ConstBuffer(sent.data() + i * kBytes, kBytes))));
      if (i % 3 == 0) pair.job.run(1);
    }
    std::size_t seen = 0;
    ASSERT_TRUE(pair.job.run_until([&] {
      const auto image = pair.memory.image();
      seen = 0;
      for (std::size_t i = 0; i < kPuts; ++i) {
        if (!operations[i]->done()) continue;
        ++seen;
        EXPECT_EQ(operations[i]->result().status, Status::ok) << status_name(operations[i]->result().status);
        EXPECT_TRUE(std::equal(image.begin() + static_cast<std::ptrdiff_t>(i * kBytes),
                               image.begin() + static_cast<std::ptrdiff_t>((i + 1) * kBytes),
                               sent.begin() + static_cast<std::ptrdiff_t>(i * kBytes)));
      }
      return seen == kPuts;
    }));
  }
}

TEST(Rma, what_the_network_has_no_room_for_is_told_and_can_be_tried_again) {
  JobOptions options;
  options.network = {.seed = 3, .delay_min = 2, .delay_max = 4, .requests_max = 6};
  Pair pair(options, MemoryKind::host, 1 << 20, true);
  const auto sent = pattern(1 << 20, 5);
  std::vector<std::unique_ptr<Operation>> operations;
  bool refused = false;
  for (std::size_t i = 0; i < 64; ++i) {
    const ConstBuffer part(sent.data() + i * 16384, 16384, MemoryKind::host);
    auto operation = std::unique_ptr<Operation>(new Operation(pair.there.put(i * 16384, part)));
    while (operation->done() && operation->result().status == Status::limit_reached) {
      refused = true;
      pair.job.run(1);
      operation.reset(new Operation(pair.there.put(i * 16384, part)));
    }
    operations.push_back(std::move(operation));
  }
  for (const auto& operation : operations) EXPECT_TRUE(pair.job.outcome(*operation).ok());
  EXPECT_TRUE(refused);
  EXPECT_EQ(pair.memory.image(), sent);
}

TEST(Rma, pieces_of_a_staged_put_wait_for_room) {
  JobOptions options = with(GpuChoice::emulated);
  options.network = {.seed = 3, .delay_min = 1, .delay_max = 4, .requests_max = 2};
  Pair pair(options, MemoryKind::host, kLarge, true);
  Space local(pair.job.rank(1), MemoryKind::emulated, kLarge);
  const auto sent = pattern(kLarge, 5);
  local.fill(sent);
  const Operation first = pair.there.put(0, local.whole());
  std::vector<std::byte> other(8, std::byte{9}), got(8);
  // Others that take the room between the pieces.
  for (int round = 0; round < 100'000 && !first.done(); ++round) {
    const Operation get = pair.there.get(kLarge - 8, Buffer(got.data(), 8, MemoryKind::host));
    static_cast<void>(pair.job.run_until([&] { return get.done(); }));
  }
  ASSERT_TRUE(pair.job.outcome(first).ok());
  EXPECT_EQ(pair.memory.image(), sent);
}

TEST(Rma, a_get_that_nobody_waits_for_leaves_its_landing_alone) {
  Pair pair({}, MemoryKind::host, 1 << 20);
  pair.memory.fill(pattern(1 << 20, 1));
  auto landing = std::make_unique<std::vector<std::byte>>(1 << 20);
  auto get = std::unique_ptr<Operation>(new Operation(pair.there.get(0, std::span(*landing))));
  ASSERT_FALSE(get->done());
  get.reset();
  landing.reset();  // from here on the sanitizer watches
  pair.job.run(20);
  EXPECT_EQ(pair.there.pending(), 0u);
}

TEST(Rma, closing_under_way_lets_the_last_ones_end) {
  for (const bool of_heap : {false, true}) {
    JobOptions options;
    options.network = {.seed = 3, .delay_min = 5, .delay_max = 9};
    Pair pair(options, MemoryKind::host, 1 << 20, of_heap);
    const auto sent = pattern(1 << 20, 5);
    const Operation put = pair.there.put(0, std::span(sent));
    EXPECT_FALSE(put.done());
    pair.there.close();
    EXPECT_FALSE(pair.there.is_open());
    EXPECT_TRUE(pair.job.outcome(put).ok());
    EXPECT_EQ(pair.memory.image(), sent);
    Op op;
    EXPECT_EQ(pair.there.post_put(0, std::span(sent), op), Status::invalid_argument);
    EXPECT_EQ(pair.there.size(), 0u);
  }
}

TEST(Rma, a_segment_closed_by_its_owner_refuses_where_that_is_noticed) {
  Pair heap({}, MemoryKind::host, 65536, true);
  heap.segment.close();
  std::vector<std::byte> data(8);
  const Operation late = heap.there.put(0, std::span(data));
  EXPECT_FALSE(heap.job.outcome(late).ok());
  EXPECT_TRUE(heap.segment.ticket().bytes().empty());

  InProcessJob job;
  Space memory(job.rank(0), MemoryKind::host, 65536);
  Segment own = expose(job.rank(0), memory.whole());
  const SegmentTicket ticket = own.ticket();
  RemoteSegment there(job.rank(0), Rank{0}, ticket);
  EXPECT_TRUE(job.outcome(there.put(0, std::span(data))).ok());
  own.close();
  EXPECT_EQ(job.outcome(there.put(0, std::span(data))).status, Status::not_found);
  EXPECT_THROW(RemoteSegment(job.rank(0), Rank{0}, ticket), Error);
}

/// Small ones of the same size that follow each other ask no question; what is wrong with one is noticed all the same.
TEST(Rma, the_like_of_a_put_by_the_cpu_is_looked_at_as_that_was) {
  for (const int user : {0, 1}) {
    SCOPED_TRACE(user);
    JobOptions options;
    options.links = true;
    InProcessJob job(options);
    Space memory(job.rank(0), MemoryKind::host, 65536), local(job.rank(user), MemoryKind::host, 4096);
    Segment segment = expose(job.rank(0), memory.whole());
    RemoteSegment there(job.rank(user), Rank{0}, segment.ticket());
    memory.fill(std::vector<std::byte>(65536));
    const auto sent = pattern(4096, 3);
    local.fill(sent);
    const std::uint64_t before = puts(job, user, Path::shm);
    for (std::size_t i = 0; i < 8; ++i) {
      const OpResult put = job.outcome(there.put(i * 8, local.part(i * 8, 8)));
      EXPECT_TRUE(put.ok());
      EXPECT_EQ(put.bytes, 8u);
    }
    EXPECT_EQ(puts(job, user, Path::shm), before + 8);
    EXPECT_EQ(std::memcmp(memory.image().data(), sent.data(), 64), 0);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(job.outcome(there.get(i * 8, local.part(1024 + i * 8, 8))).bytes, 8u);
    EXPECT_EQ(std::memcmp(local.image().data() + 1024, sent.data(), 64), 0);

    EXPECT_EQ(job.outcome(there.put(65536 - 7, local.part(0, 8))).status, Status::invalid_argument);
    EXPECT_EQ(job.outcome(there.get(~std::uint64_t{0}, local.part(0, 8))).status, Status::invalid_argument);
    EXPECT_EQ(job.outcome(there.put(0, ConstBuffer(nullptr, 8, MemoryKind::host))).status, Status::invalid_argument);
    EXPECT_EQ(job.outcome(there.put(0, local.part(0, 8), {.path = Path::courier})).status, Status::not_supported);
    const TransferShapes shapes{Shape::contiguous(4), Shape::contiguous(4, 100)};
    EXPECT_EQ(job.outcome(there.put(0, local.part(0, 8), {.path = Path::automatic, .shapes = &shapes})).bytes, 4u);
    EXPECT_EQ(std::memcmp(memory.image().data() + 100, sent.data(), 4), 0);
    segment.close();
    if (user == 0) {
      EXPECT_EQ(job.outcome(there.put(0, local.part(0, 8))).status, Status::not_found);
    }
  }
}

TEST(Rma, two_segments_do_not_mix) {
  InProcessJob job(with(GpuChoice::emulated));
  Space one(job.rank(0), MemoryKind::host, 20'000), two(job.rank(0), MemoryKind::emulated, 20'000);
  Segment first = expose(job.rank(0), one.whole());
  const Segment second = expose(job.rank(0), two.part(100, 5000));
  RemoteSegment to_first(job.rank(1), Rank{0}, first.ticket()), to_second(job.rank(1), Rank{0}, second.ticket());
  Space local(job.rank(1), MemoryKind::emulated, 5000);
  const auto sent = pattern(5000, 9), blank = std::vector<std::byte>(20'000);
  one.fill(blank);
  two.fill(blank);
  local.fill(sent);
  EXPECT_TRUE(job.outcome(to_second.put(0, local.whole())).ok());
  EXPECT_TRUE(job.outcome(to_first.put(15'000, local.whole())).ok());
  auto expected = blank;
  std::copy(sent.begin(), sent.end(), expected.begin() + 100);
  EXPECT_EQ(two.image(), expected);
  expected = blank;
  std::copy(sent.begin(), sent.end(), expected.begin() + 15'000);
  EXPECT_EQ(one.image(), expected);
  RemoteSegment moved = std::move(to_first);
  to_second = std::move(moved);
  EXPECT_EQ(to_second.size(), 20'000u);
}

TEST(Rma, device_memory_that_cannot_be_mapped_and_that_the_network_does_not_take_is_refused_by_name) {
  JobOptions options = with(GpuChoice::emulated);
  options.mappable = [](const port::ExportRecord&) { return false; };
  InProcessJob job(options);
  Space memory(job.rank(0), MemoryKind::emulated, 65536);
  const Segment segment = expose(job.rank(0), memory.whole());
  try {
    RemoteSegment there(job.rank(1), Rank{0}, segment.ticket());
    FAIL() << "it cannot be reached";
  } catch (const Error& fault) {
    EXPECT_EQ(fault.status(), Status::not_supported);
    EXPECT_NE(std::string(fault.what()).find("65536 bytes of emulated memory of rank 0"), std::string::npos)
        << fault.what();
  }
}

TEST(Rma, a_failure_of_the_network_ends_puts_and_gets_and_all_after_them) {
  for (const port::FaultPoint point : {port::FaultPoint::put, port::FaultPoint::get, port::FaultPoint::flush}) {
    JobOptions options;
    options.wrap = [&](int, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
      port::FaultPolicy policy;
      policy.rules = {{.point = point, .effect = port::FaultEffect::fail, .nth = 2, .status = Status::io_error}};
      return std::make_unique<port::FaultyWire>(std::move(wire), policy);
    };
    Pair pair(options, MemoryKind::host, 65536, true);
    std::vector<std::byte> data(100);
    const auto once = [&] {
      return point == port::FaultPoint::get ? pair.job.outcome(pair.there.get(0, std::span(data))).status
                                            : pair.job.outcome(pair.there.put(0, std::span(data))).status;
    };
    EXPECT_EQ(once(), Status::ok);
    EXPECT_EQ(once(), Status::peer_lost);
    EXPECT_EQ(pair.job.rank(1).worker().engine().counters().failures.read(), 1u);
    pair.job.run(3);
    EXPECT_EQ(once(), Status::peer_lost) << "the connection was given up";
  }
}

TEST(Rma, small_puts_between_devices_that_follow_each_other_go_to_the_courier) {
  if (test::small_mapped_path() != Path::courier) GTEST_SKIP() << "emulated devices have couriers with BRANT_COURIER=1";
  Pair pair(with(GpuChoice::emulated), MemoryKind::emulated, 65536);
  Space local(pair.job.rank(1), MemoryKind::emulated, 65536);
  const auto sent = pattern(65536, 3);
  pair.memory.fill(std::vector<std::byte>(65536));
  local.fill(sent);
  for (int round = 0; round < 1000 && puts(pair.job, 1, Path::courier) < 64; ++round) {
    for (std::size_t at = 0; at < 65536; at += 4096) {
      ASSERT_TRUE(pair.job.outcome(pair.there.put(at, local.part(at, 4096))).ok());
    }
  }
  EXPECT_GE(puts(pair.job, 1, Path::courier), 64u);
  EXPECT_EQ(pair.memory.image(), sent);
}

TEST(Rma, a_coroutine_awaits_puts_and_gets) {
  Pair pair({}, MemoryKind::host, 1 << 20);
  const auto sent = pattern(1 << 20, 3);
  std::vector<std::byte> back(1 << 20);
  Runtime& runtime = pair.job.rank(1);
  const auto program = [&]() -> Task<OpResult> {
    const OpResult put = co_await pair.there.put(0, std::span(sent));
    if (!put.ok()) co_return put;
    co_return co_await pair.there.get(0, std::span(back));
  };
  const OpResult result = runtime.run(program());
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.bytes, back.size());
  EXPECT_EQ(back, sent);
  EXPECT_EQ(gets(pair.job, 1, Path::shm), 1u);
}

}  // namespace
}  // namespace brant
