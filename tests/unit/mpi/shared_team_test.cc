// One process, many members: what goes wrong, what goes on, and what it costs.
#include "models/mpi/shared/shared_team.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "multi/mpi/shared_members.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

class SharedTeam : public testing::Test {
 protected:
  Runtime& runtime() { return job_.rank(0); }
  std::unique_ptr<mpi::SharedTeam> make(unsigned members) {
    return std::make_unique<mpi::SharedTeam>(runtime(), std::vector<unsigned>(members, 0), 0, Team());
  }
  std::unique_ptr<Operation> start(mpi::SharedTeam& team, unsigned member, const Collective& call) {
    return std::make_unique<Operation>(Moment::delivered, [&](Op& op) noexcept { return team.post(member, call, op); });
  }
  Status outcome(const std::unique_ptr<Operation>& operation) { return job_.outcome(*operation).status; }

  InProcessJob job_{ranks(1)};
};

template <typename T>
Collective sum_of(T& value) {
  return allreduce(Buffer(&value, sizeof(T), MemoryKind::host), kDataTypeOf<T>, ReduceOp::sum);
}

TEST_F(SharedTeam, members_may_be_several_calls_ahead) {
  constexpr unsigned kMembers = 5, kCalls = 20;
  const auto team = make(kMembers);
  std::array<std::array<std::int64_t, kCalls>, kMembers> values;
  std::vector<std::unique_ptr<Operation>> operations;
  for (unsigned m = 0; m < kMembers; ++m) {
    for (unsigned c = 0; c < kCalls; ++c) {
      values[m][c] = m * 100 + c;
      operations.push_back(start(*team, m, sum_of(values[m][c])));
      EXPECT_FALSE(operations.back()->done());
    }
  }
  for (const auto& operation : operations) EXPECT_EQ(outcome(operation), Status::ok);
  for (const auto& own : values) {
    for (unsigned c = 0; c < kCalls; ++c) EXPECT_EQ(own[c], 1000 + 5 * c);
  }
}

TEST_F(SharedTeam, nobody_goes_on_before_all_have_come) {
  const auto team = make(3);
  const auto first = start(*team, 2, barrier()), second = start(*team, 0, barrier());
  job_.run(10);
  EXPECT_FALSE(first->done());
  EXPECT_FALSE(second->done());
  EXPECT_NE(team->awaited().find("of this process: 1"), std::string::npos) << team->awaited();
  const auto third = start(*team, 1, barrier());
  for (const auto* operation : {&first, &second, &third}) EXPECT_EQ(outcome(*operation), Status::ok);
  EXPECT_EQ(team->awaited(), "");
}

/// Another kind, size, type, op, root; each ends it for all, and says who it was.
TEST_F(SharedTeam, members_that_call_other_things_are_named) {
  std::array<std::int32_t, 4> data{};
  const Buffer all{data.data(), sizeof(data), MemoryKind::host}, half{data.data(), 8, MemoryKind::host};
  const UserReduce pairs{&multiply, nullptr, 8}, quads{&multiply, nullptr, 16};
  const auto sum = [](Buffer what, DataType type, ReduceOp op) { return allreduce(what, type, op); };
  const std::pair<Collective, Collective> wrong[] = {
      {barrier(), broadcast(all, 0)},
      {broadcast(all, 0), broadcast(all, 1)},
      {broadcast(all, 0), broadcast(half, 0)},
      {sum(all, DataType::i32, ReduceOp::sum), sum(all, DataType::u32, ReduceOp::sum)},
      {sum(all, DataType::i32, ReduceOp::sum), sum(all, DataType::i32, ReduceOp::max)},
      {allreduce(all, all, pairs), allreduce(all, all, quads)},
  };
  for (const auto& [right, other] : wrong) {
    const auto team = make(3);
    EXPECT_EQ(team->fault(), "");
    const auto a = start(*team, 2, right), b = start(*team, 0, other), ahead = start(*team, 0, barrier());
    EXPECT_EQ(outcome(a), Status::invalid_argument);
    EXPECT_EQ(outcome(b), Status::invalid_argument);
    EXPECT_EQ(outcome(ahead), Status::invalid_argument);
    EXPECT_EQ(outcome(start(*team, 1, right)), Status::invalid_argument);
    EXPECT_NE(team->fault().find("member 2"), std::string::npos) << team->fault();
    EXPECT_NE(team->fault().find("member 0"), std::string::npos) << team->fault();
  }
}

/// Sizes that nobody else can know are compared where the blocks meet.
TEST_F(SharedTeam, two_members_that_disagree_on_a_block_are_named) {
  Bytes data(64), other(64);
  const ConstBuffer in{data.data(), 16, MemoryKind::host};
  const Buffer out{other.data(), 16, MemoryKind::host};
  const Sizes eights = {8, 8};
  const std::vector<std::int32_t> zero = {0}, one = {1}, nobody;
  const std::pair<Collective, Collective> wrong[] = {
      {gatherv(ConstBuffer(data.data(), 8, MemoryKind::host), out, eights, 0), gatherv(in, {}, {}, 0)},
      {scatterv(in, eights, Buffer(other.data(), 8, MemoryKind::host), 0), scatterv({}, {}, out, 0)},
      {neighbour_alltoall(in, {}, {nobody, one}),
       neighbour_alltoall({}, Buffer(other.data(), 8, MemoryKind::host), {zero, nobody})},
      {neighbour_alltoall(in, {}, {nobody, one}), neighbour_alltoall({}, {}, {nobody, nobody})},
      {neighbour_alltoall({}, {}, {nobody, nobody}), neighbour_alltoall({}, out, {zero, nobody})},
  };
  for (const auto& [first, second] : wrong) {
    const auto team = make(2);
    const auto a = start(*team, 0, first), b = start(*team, 1, second);
    EXPECT_EQ(outcome(a), Status::invalid_argument);
    EXPECT_EQ(outcome(b), Status::invalid_argument);
    EXPECT_NE(team->fault().find("member 0"), std::string::npos) << team->fault();
    EXPECT_NE(team->fault().find("member 1"), std::string::npos) << team->fault();
  }
  const auto team = make(2);
  const Sizes gives = {8, 4}, gets = {8, 8};
  const auto a = start(*team, 0, alltoallv({data.data(), 12, MemoryKind::host}, gives, out, gets));
  const auto b = start(*team, 1, alltoallv(in, eights, out, eights));
  EXPECT_EQ(outcome(a), Status::invalid_argument);
  EXPECT_EQ(outcome(b), Status::invalid_argument);
  EXPECT_NE(team->fault().find("4 bytes"), std::string::npos) << team->fault();
}

TEST_F(SharedTeam, calls_that_a_member_does_not_come_to_end_once_it_has_left) {
  const auto before = make(3), meanwhile = make(3);
  before->leave(1);
  EXPECT_EQ(before->fault(), "");
  EXPECT_EQ(outcome(start(*before, 0, barrier())), Status::peer_lost);
  EXPECT_EQ(outcome(start(*before, 2, barrier())), Status::peer_lost);
  EXPECT_NE(before->fault().find("member 1"), std::string::npos) << before->fault();
  const auto waiting = start(*meanwhile, 2, barrier());
  meanwhile->leave(0);
  EXPECT_EQ(outcome(waiting), Status::peer_lost);
}

TEST_F(SharedTeam, calls_that_a_member_has_come_to_go_on_when_it_has_left) {
  const auto team = make(3);
  const auto first = start(*team, 1, barrier());
  team->leave(1);
  const auto second = start(*team, 0, barrier()), third = start(*team, 2, barrier());
  for (const auto* operation : {&first, &second, &third}) EXPECT_EQ(outcome(*operation), Status::ok);
  team->leave(0);
  EXPECT_EQ(team->fault(), "");
}

TEST_F(SharedTeam, wrong_arguments_are_their_members_own) {
  const auto team = make(2);
  std::int32_t values[2] = {1, 2};
  EXPECT_EQ(outcome(start(*team, 0, broadcast(Buffer(values, 4), 2))), Status::invalid_argument);
  EXPECT_EQ(outcome(start(*team, 7, barrier())), Status::invalid_argument);
  EXPECT_EQ(outcome(start(*team, 0, broadcast(Buffer(nullptr, 4), 0))), Status::invalid_argument);
  EXPECT_EQ(team->fault(), "");
  const auto a = start(*team, 0, sum_of(values[0])), b = start(*team, 1, sum_of(values[1]));
  EXPECT_EQ(outcome(a), Status::ok);
  EXPECT_EQ(outcome(b), Status::ok);
  EXPECT_EQ(values[0], 3);
}

TEST_F(SharedTeam, what_is_under_way_ends_with_it) {
  auto team = make(3);
  std::int32_t values[3] = {};
  const auto a = start(*team, 0, sum_of(values[0])), b = start(*team, 1, sum_of(values[1]));
  const auto ahead = start(*team, 0, barrier());
  team->close();
  EXPECT_EQ(outcome(a), Status::canceled);
  EXPECT_EQ(outcome(start(*team, 2, barrier())), Status::canceled);
  EXPECT_NE(team->fault(), "");
  team.reset();
  EXPECT_EQ(outcome(b), Status::canceled);
  EXPECT_EQ(outcome(ahead), Status::canceled);
}

TEST_F(SharedTeam, a_member_that_looks_away_takes_part_all_the_same) {
  const auto team = make(2);
  std::int32_t values[2] = {3, 4};
  static_cast<void>(start(*team, 0, sum_of(values[0])));
  EXPECT_EQ(outcome(start(*team, 1, sum_of(values[1]))), Status::ok);
  EXPECT_EQ(values[0], 7);
  EXPECT_EQ(values[1], 7);
}

TEST_F(SharedTeam, a_process_without_members_is_refused) {
  EXPECT_THROW(mpi::SharedTeam(runtime(), {1, 1}, 1, Team()), Error);
  EXPECT_THROW(mpi::SharedTeam(runtime(), {0, 1}, 0, Team()), Error);
  EXPECT_THROW(mpi::SharedTeam(runtime(), {0, 0}, 1, Team()), Error);
}

/// Prints what a call costs each member.
TEST_F(SharedTeam, cost_of_small_calls) {
  for (const unsigned members : {2u, 16u, 1000u}) {
    const auto team = make(members);
    std::vector<double> values(members, 1);
    std::vector<Op> ops(members);
    unsigned ended = 0;
    const auto carry_out = [&](auto call_of) {
      ended = 0;
      for (unsigned m = 0; m < members; ++m) {
        ops[m].delivered = {[](void* count, const OpResult&) noexcept { ++*static_cast<unsigned*>(count); }, &ended};
        ASSERT_EQ(team->post(m, call_of(m), ops[m]), Status::in_progress);
      }
      while (ended < members) static_cast<void>(runtime().worker().progress());
    };
    const auto measure = [&](const char* what, auto call_of) {
      const unsigned calls = 1'000'000 / members;
      for (unsigned i = 0; i < calls / 4; ++i) carry_out(call_of);
      const std::clock_t begin = std::clock();  // others use the cores too
      for (unsigned i = 0; i < calls; ++i) carry_out(call_of);
      const double nanoseconds = 1e9 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      std::printf("%s of %u members: %.1f ns a member\n", what, members, nanoseconds / calls / members);
    };
    measure("barrier", [](unsigned) { return barrier(); });
    measure("allreduce of 8 bytes", [&](unsigned m) {
      const Buffer own(&values[m], sizeof(double), MemoryKind::host);
      return allreduce(own, DataType::f64, ReduceOp::max);
    });
  }
}

}  // namespace
}  // namespace brant
