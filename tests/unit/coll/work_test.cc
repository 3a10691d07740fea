// The arguments of a call: what fits together, and counts beyond 4 GiB, of which nothing is moved here.
#include "ops/coll/work.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/coll/extent.h"
#include "ops/coll/houses.h"
#include "ops/coll/message_steps.h"
#include "ops/coll/plan.h"

namespace brant::coll {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::byte* place(std::uint64_t address) { return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address)); }

Work work_of(const Collective& call, const Members& members) {
  Work work;
  std::string why;
  EXPECT_EQ(make_work(call, members, work, why), Status::ok) << why;
  return work;
}

TEST(Work, vectors_beyond_4_gib_are_cut_without_a_gap) {
  const std::uint64_t bytes = 6 * kGiB + 12;
  for (const bool board : {false, true}) {
    const Members members{3, 1};
    const Work work = work_of(
        allreduce(ConstBuffer(place(kGiB), bytes), Buffer(place(100 * kGiB), bytes), DataType::f32, ReduceOp::sum),
        members);
    EXPECT_EQ(bytes_of(work.words), bytes);
    const Plan plan = plan_for(without_reads({work.kind, 3, work.bytes, work.element, board, {}}));
    std::uint64_t next = 0;
    for (std::uint64_t round = 0; round < plan.rounds; ++round) {
      for (unsigned m = 0; m < 3; ++m) {
        const Extent slice = slice_of(bytes, work.element, plan, 3, m, round);
        if (slice.bytes == 0) continue;
        ASSERT_EQ(slice.offset, next);
        next += slice.bytes;
      }
    }
    EXPECT_EQ(next, bytes);
  }
}

TEST(Work, blocks_beyond_4_gib_lie_where_they_belong) {
  const Members members{3, 2};
  const std::vector<std::uint64_t> gives = {5 * kGiB, 1, 6 * kGiB}, gets = {7 * kGiB, 8, 6 * kGiB};
  const Work work =
      work_of(alltoallv(ConstBuffer(place(kGiB), 11 * kGiB + 1), gives, Buffer(place(100 * kGiB), 13 * kGiB + 8), gets),
              members);
  EXPECT_EQ(work.in_block_offset(2), 5 * kGiB + 1);
  EXPECT_EQ(work.block_offset(2), 7 * kGiB + 8);
  EXPECT_EQ(work.bytes, 7 * kGiB);
  const Plan plan = plan_for({work.kind, 3, work.bytes, work.element, false, {}, false, true});
  std::vector<Step> steps;
  add_steps(members, work, plan, plan.rounds - 1, steps);
  ASSERT_EQ(steps.size(), 1u);  // the end of the longest block, which comes from member 0
  EXPECT_EQ(steps[0].what, Step::What::receive);
  EXPECT_EQ(steps[0].to + steps[0].bytes, place(107 * kGiB));
  // What all have is known by its sum.
  const std::vector<std::uint64_t> counts = {5 * kGiB, 4, 6 * kGiB};
  const Work sums = work_of(reduce_scatter(ConstBuffer(place(kGiB), 11 * kGiB + 4), Buffer(place(100 * kGiB), 6 * kGiB),
                                           counts, DataType::f32, ReduceOp::sum),
                            members);
  EXPECT_EQ(bytes_of(sums.words), 11 * kGiB + 4);
  EXPECT_EQ(sums.result_bytes, 6 * kGiB);
}

TEST(Work, what_does_not_fit_is_refused) {
  const Members members{2, 0};
  const auto refused = [&](const Collective& call) {
    Work work;
    std::string why;
    const Status status = make_work(call, members, work, why);
    EXPECT_EQ(why.empty(), status == Status::ok);
    return status == Status::invalid_argument;
  };
  const ConstBuffer in(place(kGiB), 16);
  const Buffer out(place(2 * kGiB), 16);
  const std::vector<std::uint64_t> fits = {4, 12}, odd = {2, 14}, much = {8, 12}, three = {4, 4, 8};
  EXPECT_FALSE(refused(alltoallv(in, fits, out, fits)));
  EXPECT_TRUE(refused(alltoallv(in, much, out, fits)));
  EXPECT_TRUE(refused(alltoallv(in, three, out, fits)));
  EXPECT_TRUE(refused(alltoallv(in, odd, out, fits)));  // to itself 2, of itself 4
  EXPECT_FALSE(refused(alltoallv({}, {}, out, fits)));
  EXPECT_TRUE(refused(reduce_scatter(in, Buffer(out.data, 2), odd, DataType::f32, ReduceOp::sum)));
  EXPECT_FALSE(refused(reduce_scatter(in, Buffer(out.data, 4), fits, DataType::f32, ReduceOp::sum)));
  EXPECT_TRUE(refused(gatherv(ConstBuffer(in.data, 3), out, fits, 0)));
  EXPECT_FALSE(refused(scatterv(in, fits, Buffer(out.data, 4), 0)));
  const std::vector<std::int32_t> both = {0, 1}, outside = {2};
  EXPECT_FALSE(refused(neighbour_alltoall(in, out, {both, both})));
  EXPECT_TRUE(refused(neighbour_alltoall(in, out, {outside, both})));
  EXPECT_TRUE(refused(neighbour_allgather(in, out, {both, both})));  // 32 come out
}

TEST(Houses, are_led_by_their_lowest_member) {
  const std::vector<unsigned> leaders = {0, 1, 0, 1, 4};
  const Houses houses(leaders, 3);
  ASSERT_EQ(houses.all().size(), 3u);
  EXPECT_EQ(houses.own(), (std::vector<unsigned>{1, 3}));
  EXPECT_EQ(houses.own_place(), 1u);
  EXPECT_EQ(houses.place(), 1u);
  EXPECT_FALSE(houses.leads());
  EXPECT_TRUE(houses.are_worth_it());
  EXPECT_FALSE(Houses(std::vector<unsigned>{0, 1, 2}, 0).are_worth_it());
  EXPECT_FALSE(Houses(std::vector<unsigned>{0, 0, 0}, 0).are_worth_it());
}

}  // namespace
}  // namespace brant::coll
