// Puts and gets whose bytes do not lie in one run, between memory of all kinds.
#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/sinks.h"
#include "brant/ops/rma.h"
#include "ops/mover/wire_runs.h"
#include "port/wire/faulty/faulty.h"
#include "support/effort.h"
#include "support/shapes.h"
#include "unit/rma/rma_pair.h"

namespace brant {
namespace {

using test::Ground;
using test::InProcessJob;
using test::JobOptions;
using test::kGrounds;
using test::moved;
using test::pattern;
using test::ShapeZoo;
using test::Space;

struct Case {
  Ground here;
  Ground there;
  int owner;  ///< 0; or 1, the rank that puts and gets.
};

std::vector<Case> cases_of(int owner) {
  std::vector<Case> cases;
  for (const Ground& here : kGrounds) {
    for (const Ground& there : kGrounds) cases.push_back({here, there, owner});
  }
  return cases;
}

JobOptions emulated() {
  JobOptions options;
  options.gpu = GpuChoice::emulated;
  return options;
}

/// A segment of `owner` and memory of rank 1, with room for shapes of so much.
class ShapedTransfers {
 public:
  static constexpr std::size_t kFront = 3;

  ShapedTransfers(const Case& of, std::size_t scale, const JobOptions& options = emulated())
      : case_(of), room_(ShapeZoo::room(scale)), job_(options) {}

  OpResult put(const TransferShapes& shapes) {
    return transfer([&](const RmaOptions& options) { return there_.put(kFront, local_.whole(), options); }, shapes);
  }
  OpResult get(const TransferShapes& shapes) {
    return transfer([&](const RmaOptions& options) { return there_.get(kFront, local_.whole(), options); }, shapes);
  }
  void expect_put(const TransferShapes& shapes) {
    const OpResult result = put(shapes);
    EXPECT_EQ(result.status, Status::ok) << status_name(result.status);
    EXPECT_EQ(result.bytes, shapes.to.bytes());
    EXPECT_EQ(segment_memory_.image(), moved(image_there_, kFront, image_here_, 0, shapes));
  }
  void expect_got(const TransferShapes& shapes) {
    const OpResult result = get(shapes);
    EXPECT_EQ(result.status, Status::ok) << status_name(result.status);
    EXPECT_EQ(result.bytes, shapes.to.bytes());
    EXPECT_EQ(local_.image(), moved(image_here_, 0, image_there_, kFront, shapes));
  }
  InProcessJob& job() { return job_; }

 private:
  template <typename Start>
  OpResult transfer(Start&& start, const TransferShapes& shapes) {
    segment_memory_.fill(image_there_);
    local_.fill(image_here_);
    RmaOptions options;
    options.shapes = &shapes;
    const Operation operation = start(options);
    return job_.outcome(operation);
  }

  const Case case_;
  const std::size_t room_;
  const std::vector<std::byte> image_there_ = pattern(room_ + kFront, 1), image_here_ = pattern(room_, 2);
  InProcessJob job_;
  Space segment_memory_{job_.rank(case_.owner), case_.there.kind, room_ + kFront, case_.there.of_heap};
  Space local_{job_.rank(1), case_.here.kind, room_, case_.here.of_heap};
  Segment segment_ = expose(job_.rank(case_.owner), segment_memory_.whole());
  RemoteSegment there_{job_.rank(1), Rank{case_.owner}, segment_.ticket()};
};

class ShapedRma : public testing::TestWithParam<Case> {};
class LargeShapedRma : public testing::TestWithParam<Case> {};

TEST_P(ShapedRma, bytes_go_from_every_shape_into_every_other) {
  const ShapeZoo zoo(1);
  ShapedTransfers transfers(GetParam(), 1);
  for (const ShapeZoo::Named& from : zoo.shapes()) {
    for (const ShapeZoo::Named& to : zoo.shapes()) {
      SCOPED_TRACE(from.name + " to " + to.name);
      transfers.expect_put({from.shape, to.shape});
      transfers.expect_got({from.shape, to.shape});
    }
  }
}

TEST_P(LargeShapedRma, arrive_in_pieces) {
  constexpr std::size_t kScale = 313;  // more than one piece of the mover, and than the runs of one call
  const ShapeZoo zoo(kScale);
  ShapedTransfers transfers(GetParam(), kScale);
  const auto& all = zoo.shapes();
  for (std::size_t i = 0; i < all.size(); i += test::effort<std::size_t>(1, 4)) {
    const ShapeZoo::Named &from = all[(i + 1) % all.size()], &to = all[(i + 5) % all.size()];
    SCOPED_TRACE(from.name + " to " + to.name);
    transfers.expect_put({from.shape, to.shape});
    transfers.expect_got({from.shape, to.shape});
  }
}

std::string name_of(const testing::TestParamInfo<Case>& each) {
  return std::string(each.param.here.name) + "_and_" + each.param.there.name;
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShapedRma, testing::ValuesIn(cases_of(0)), name_of);
INSTANTIATE_TEST_SUITE_P(OwnKinds, ShapedRma, testing::ValuesIn(cases_of(1)), name_of);
// Of the process itself they go by the same copiers.
INSTANTIATE_TEST_SUITE_P(Kinds, LargeShapedRma, testing::ValuesIn(cases_of(0)), name_of);

/// So that each run takes time, and most find no room at first.
TEST(ShapedPuts, go_run_by_run_over_a_network_that_is_slow_and_takes_few_at_a_time) {
  JobOptions options = emulated();
  options.network.delay_min = 1;
  options.network.delay_max = 4;
  options.network.requests_max = 5;
  const ShapeZoo zoo(1);
  for (const Ground& here : {kGrounds[0], kGrounds[3]}) {
    ShapedTransfers transfers({here, kGrounds[1], 0}, 1, options);
    for (const ShapeZoo::Named& there : zoo.shapes()) {
      SCOPED_TRACE(there.name);
      const Shape& block = zoo.shapes()[3].shape;
      transfers.expect_put({block, there.shape});
      transfers.expect_got({there.shape, block});
    }
  }
}

/// However many there are: a progress call posts a bounded number of runs, and none waits for all of another.
TEST(ShapedPuts, many_at_once_let_a_progress_call_return) {
  constexpr std::size_t kPuts = 64, kRuns = 600, kPitch = 2;
  std::size_t posted = 0;
  JobOptions options;
  options.wrap = [&](int rank, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
    port::FaultPolicy policy;
    if (rank == 1) policy.while_posting = [&] { ++posted; };
    return std::make_unique<port::FaultyWire>(std::move(wire), policy);
  };
  InProcessJob job(options);
  Space local(job.rank(1), MemoryKind::host, kRuns),
      remote(job.rank(0), MemoryKind::host, kPuts * kRuns * kPitch, true);
  const auto image = pattern(kRuns, 5);
  local.fill(image);
  Segment segment = expose(job.rank(0), remote.whole());
  RemoteSegment there(job.rank(1), Rank{0}, segment.ticket());
  const TransferShapes shapes{Shape::contiguous(kRuns), *Shape::strided(0, 1, std::vector<ShapeDim>{{kRuns, kPitch}})};
  RmaOptions how;
  how.shapes = &shapes;
  std::deque<Op> ops(kPuts);
  Counter counter;
  for (std::size_t i = 0; i < kPuts; ++i) {
    ops[i].delivered = counter.sink();
    counter.track(there.post_put(i * kRuns * kPitch, local.whole(), ops[i], how), ops[i]);
  }
  std::size_t most = 0, calls = 0;
  for (; counter.pending() != 0; ++calls) {
    ASSERT_LT(calls, 100'000u);
    posted = 0;
    static_cast<void>(job.rank(1).worker().progress());
    most = std::max(most, posted);
    static_cast<void>(job.rank(0).worker().progress());
  }
  EXPECT_TRUE(counter.result().ok());
  EXPECT_LE(most, 2 * WireRuns::kRunsATurn) << "runs, and what is posted behind those that have ended";
  EXPECT_GT(calls, kPuts * kRuns / (2 * WireRuns::kRunsATurn));
  const auto there_now = remote.image();
  for (std::size_t i = 0; i < kPuts * kRuns; ++i) ASSERT_EQ(there_now[i * kPitch], image[i % kRuns]) << i;
}

TEST(ShapedPuts, that_do_not_fit_are_refused) {
  const Case on_host{kGrounds[0], kGrounds[0], 0};
  ShapedTransfers transfers(on_host, 1);
  const Shape run = Shape::contiguous(100), longer = Shape::contiguous(101);
  const Shape beyond_local = Shape::contiguous(100, ShapeZoo::room(1) - 99);
  const Shape beyond_segment = Shape::contiguous(100, ShapeZoo::room(1) - 99);
  EXPECT_EQ(transfers.put({run, longer}).status, Status::invalid_argument);
  EXPECT_EQ(transfers.put({beyond_local, run}).status, Status::invalid_argument);
  EXPECT_EQ(transfers.put({run, beyond_segment}).status, Status::invalid_argument);
  EXPECT_EQ(transfers.get({beyond_segment, run}).status, Status::invalid_argument);
  EXPECT_EQ(transfers.get({run, beyond_local}).status, Status::invalid_argument);
  const Shape below = Shape::contiguous(64, static_cast<std::size_t>(-8)), endless = Shape::contiguous(SIZE_MAX - 7, 8);
  for (const TransferShapes& shapes : {TransferShapes{below, Shape::contiguous(64)},
                                       {Shape::contiguous(64), below},
                                       {endless, Shape::contiguous(SIZE_MAX - 7)}}) {
    EXPECT_EQ(transfers.put(shapes).status, Status::invalid_argument);
    EXPECT_EQ(transfers.get(shapes).status, Status::invalid_argument);
  }
  EXPECT_EQ(transfers.put({Shape(), Shape()}).status, Status::ok);
  EXPECT_EQ(transfers.put({Shape::contiguous(0, 1u << 30), *Shape::indexed({})}).status, Status::ok) << "no bytes";
  transfers.expect_put({run, run});
}

/// What lies behind a move in its lists does not matter any more: each step goes on where the last one began, and looks
/// at no run before that. So lists of millions of runs are walked along once.
TEST(ShapedPuts, do_not_walk_again_along_runs_that_they_have_passed) {
  constexpr std::size_t kRuns = 60'000, kRun = 16, kPitch = 24;
  for (const MemoryKind kind : {MemoryKind::host, MemoryKind::emulated}) {
    SCOPED_TRACE(memory_kind_name(kind));
    InProcessJob job(emulated());
    Space local(job.rank(1), kind, kRuns * kPitch), remote(job.rank(0), kind, kRuns * kRun);
    const auto image = pattern(kRuns * kPitch, 1);
    local.fill(image);
    Segment segment = expose(job.rank(0), remote.whole());
    RemoteSegment there(job.rank(1), Rank{0}, segment.ticket());
    std::vector<ByteRun> runs(kRuns);
    for (std::size_t i = 0; i < kRuns; ++i) runs[i] = {i * kPitch, kRun};
    const TransferShapes shapes{*Shape::indexed(runs), Shape::contiguous(kRuns * kRun)};
    RmaOptions options;
    options.shapes = &shapes;
    const Operation put = there.put(0, local.whole(), options);
    ASSERT_FALSE(put.done()) << "it takes several steps";
    // Then a second step has begun, and what it passed is of no interest to the next ones.
    const std::size_t of_second = kind == MemoryKind::host ? 20'000 : 4'000;
    while (remote.image()[of_second * kRun] != image[of_second * kPitch] && !put.done()) {
      job.rank(1).worker().progress();
    }
    ASSERT_FALSE(put.done());
    for (std::size_t i = 0; i < 1'000; ++i) runs[i].bytes = 0;
    EXPECT_TRUE(job.outcome(put).ok());
    const TransferShapes as_was{*Shape::strided(0, kRun, std::vector<ShapeDim>{{kRuns, kPitch}}),
                                Shape::contiguous(kRuns * kRun)};
    EXPECT_EQ(remote.image(), moved(std::vector<std::byte>(kRuns * kRun), 0, image, 0, as_was));
  }
}

}  // namespace
}  // namespace brant
