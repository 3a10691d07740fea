// The plan of a call: every call has one, and more bytes never lead back to an algorithm for fewer.
#include "ops/coll/plan.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/coll/extent.h"
#include "ops/coll/sum_order.h"
#include "ops/coll/turn_board.h"

namespace brant::coll {
namespace {

std::vector<std::uint64_t> sizes() {
  std::vector<std::uint64_t> all;
  for (std::uint64_t bytes = 0; bytes <= 300; ++bytes) all.push_back(bytes);
  for (std::uint64_t power = 512; power <= std::uint64_t{1} << 30; power *= 2) {
    for (const std::int64_t beside : {-8, 0, 4, 12}) all.push_back(power + static_cast<std::uint64_t>(beside));
  }
  return all;
}

template <typename Visit>
void for_all_queries(Visit&& visit) {
  for (unsigned kind = 1; kind < kCollectiveKindCount; ++kind) {
    for (const unsigned members : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 31u, 64u, 1000u}) {
      for (const std::size_t element :
           {std::size_t{1}, std::size_t{2}, std::size_t{8}, std::size_t{16}, std::size_t{24}, std::size_t{4096}}) {
        for (const bool board : {false, true}) {
          if (board && members > kBoardMembersMax) continue;
          visit(PlanQuery{static_cast<CollectiveKind>(kind), members, 0, element, board, {}});
          if (!board) visit(PlanQuery{static_cast<CollectiveKind>(kind), members, 0, element, board, {}, true});
        }
      }
    }
  }
}

TEST(Plan, is_there_for_every_call_and_moves_all_bytes) {
  for_all_queries([](PlanQuery query) {
    for (const std::uint64_t bytes : sizes()) {
      query.bytes = bytes / query.element * query.element;
      const Plan plan = plan_for(query);
      ASSERT_EQ(plan, plan_for(query));
      ASSERT_GE(plan.rounds, 1u);
      if (query.members == 1) {
        ASSERT_EQ(plan.algorithm, Algorithm::alone);
        continue;
      }
      ASSERT_NE(plan.algorithm, Algorithm::alone) << query.bytes << " " << query.element;
      ASSERT_TRUE(query.board || !is_of_board(plan));
      if (query.kind == CollectiveKind::barrier) continue;
      const bool reads = plan.algorithm == Algorithm::reads;
      const bool slices = plan.algorithm == Algorithm::slices || plan.algorithm == Algorithm::pairwise ||
                          (reads && query.kind == CollectiveKind::allreduce);
      // Of reads some turns move nothing.
      const Plan moving{plan.algorithm, plan.piece, plan.rounds - (reads ? 2 : 0)};
      ASSERT_NE(plan_for(without_reads(query)).algorithm, Algorithm::reads);
      const std::uint64_t moved =
          slices ? plan.piece * query.members * (moving.rounds - 1) : plan.piece * moving.rounds;
      ASSERT_GE(moved, query.bytes) << algorithm_name(plan.algorithm) << " " << query.bytes << " of " << query.element;
      if (plan.algorithm != Algorithm::lines && plan.algorithm != Algorithm::binomial) {
        ASSERT_EQ(plan.piece % query.element, 0u);
      }
      if (plan.algorithm == Algorithm::hosts) {
        ASSERT_LE(plan.piece * query.members * (shares_room(query.kind) ? query.members : 1), kSlotBytes);
      }
      if (is_of_board(plan) && !reads) {
        const bool shares = shares_room(query.kind);
        const std::uint64_t room = plan.algorithm == Algorithm::lines ? kLinePayload : kSlotBytes;
        ASSERT_LE(plan.piece * (shares ? query.members : 1), room);
        if (slices) {
          ASSERT_LE(plan.piece * query.members, kSlotBytes / 2);
        }
      }
    }
  });
}

TEST(Plan, never_goes_back_to_an_algorithm_for_fewer_bytes) {
  for_all_queries([](PlanQuery query) {
    Plan before;
    for (const std::uint64_t bytes : sizes()) {
      query.bytes = bytes / query.element * query.element;
      const Plan plan = plan_for(query);
      if (is_of_neighbours(query.kind)) {
        ASSERT_TRUE(plan.algorithm == Algorithm::direct || plan.algorithm == Algorithm::alone);
      }
      // With elements as long as a whole room, slices and messages take turns.
      if (query.element > kLineBytes) break;
      ASSERT_GE(plan.algorithm, before.algorithm) << query.bytes;
      before = plan;
    }
  });
}

/// Every way has the plan of its name, or says why it has none, for every call.
TEST(Plan, of_a_forced_way_moves_all_bytes_or_is_refused) {
  for_all_queries([](PlanQuery query) {
    for (unsigned w = 1; w < kTeamWayCount; ++w) {
      query.way = static_cast<TeamWay>(w);
      for (const std::uint64_t bytes : {0u, 8u, 48u, 4096u, 70'000u, 5'000'000u}) {
        query.bytes = query.kind == CollectiveKind::barrier ? 0 : bytes / query.element * query.element;
        if (why_not_forced(query) != nullptr) {
          ASSERT_GT(query.members, 1u);
          continue;
        }
        const Plan plan = plan_for(query);
        if (query.members == 1) {
          ASSERT_EQ(plan.algorithm, Algorithm::alone);
          continue;
        }
        if (query.way == TeamWay::messages) {
          ASSERT_GE(plan.algorithm, Algorithm::dissemination);
          continue;
        }
        const bool stands = query.kind == CollectiveKind::barrier && query.way != TeamWay::hosts;
        ASSERT_EQ(algorithm_name(plan.algorithm), stands ? "lines" : team_way_name(query.way)) << bytes;
        ASSERT_NE(plan_for(without_reads(query)).algorithm, Algorithm::reads);
        ASSERT_TRUE(query.bytes == 0 || plan.piece != 0) << query.element;
        ASSERT_GE(plan.piece * plan.rounds * query.members, query.bytes);
      }
    }
  });
}

TEST(Plan, of_several_hosts_sends_what_each_gives_in_sum_where_the_order_is_free) {
  PlanQuery query{CollectiveKind::allreduce, 8, 4096, 4, false, {}, true};
  query.houses = 2;
  EXPECT_EQ(plan_for(query).algorithm, Algorithm::hosts);
  query.any_order = true;
  EXPECT_EQ(plan_for(query), (Plan{Algorithm::partials, kSlotBytes / 2, 1}));
  query.bytes = kSlotBytes;
  EXPECT_EQ(plan_for(query), (Plan{Algorithm::partials, kSlotBytes / 2, 2})) << "more than what all show would fit";
  query.bytes += 4;
  EXPECT_EQ(plan_for(query).algorithm, Algorithm::pairwise);
  query.way = TeamWay::hosts;
  EXPECT_EQ(why_not_forced(query), nullptr);
  EXPECT_EQ(plan_for(query), (Plan{Algorithm::partials, kSlotBytes / 2, 3}));
  query.any_order = false;
  EXPECT_NE(why_not_forced(query), nullptr);
  query = {CollectiveKind::allgather, 8, 64, 1, false, {}, true};
  query.houses = 2;
  query.any_order = true;
  EXPECT_EQ(plan_for(query).algorithm, Algorithm::hosts) << "nothing is combined";
}

TEST(SumOrder, is_free_where_bits_do_not_depend_on_it_or_the_option_says_so) {
  const auto any = [](DataType type, ReduceOp op, SumOrder order) {
    return combines_in_any_order({type, op, nullptr}, order);
  };
  EXPECT_TRUE(any(DataType::i32, ReduceOp::sum, SumOrder::of_ranks));
  EXPECT_TRUE(any(DataType::u8, ReduceOp::bit_xor, SumOrder::of_ranks));
  EXPECT_TRUE(any(DataType::boolean, ReduceOp::logical_and, SumOrder::of_ranks));
  EXPECT_FALSE(any(DataType::f64, ReduceOp::sum, SumOrder::of_ranks));
  EXPECT_FALSE(any(DataType::f64, ReduceOp::max, SumOrder::of_ranks)) << "of NaN and -0";
  EXPECT_TRUE(any(DataType::f64, ReduceOp::sum, SumOrder::free));
  for (const ReduceOp op : {ReduceOp::average, ReduceOp::user, ReduceOp::min_place})
    EXPECT_FALSE(any(DataType::i32, op, SumOrder::free));
  EXPECT_FALSE(any(DataType::bf16, ReduceOp::sum, SumOrder::free)) << "it would be rounded twice";
}

TEST(Plan, says_why_a_forced_way_does_not_carry_a_call_out) {
  PlanQuery query{CollectiveKind::allreduce, 4, 64, 4, true, {}};
  const auto why = [&](TeamWay way) {
    query.way = way;
    const char* reason = why_not_forced(query);
    return std::string(reason == nullptr ? "" : reason);
  };
  EXPECT_NE(why(TeamWay::lines).find("48 bytes"), std::string::npos);
  EXPECT_NE(why(TeamWay::hosts).find("several hosts"), std::string::npos);
  EXPECT_EQ(why(TeamWay::slices), "");
  query.kind = CollectiveKind::scan;
  EXPECT_NE(why(TeamWay::slices).find("allreduce"), std::string::npos);
  query.kind = CollectiveKind::reduce;
  EXPECT_NE(why(TeamWay::reads).find("root"), std::string::npos);
  query.kind = CollectiveKind::alltoall;
  query.uneven = true;
  EXPECT_NE(why(TeamWay::reads).find("sizes"), std::string::npos);
  query.board = false;
  EXPECT_NE(why(TeamWay::slots).find("share memory"), std::string::npos);
  EXPECT_EQ(why(TeamWay::messages), "");
  TeamWay way = TeamWay::automatic;
  EXPECT_TRUE(team_way_from_name("reads", way));
  EXPECT_EQ(way, TeamWay::reads);
  EXPECT_FALSE(team_way_from_name("pigeons", way));
}

TEST(Plan, slices_of_a_round_lie_one_behind_the_other) {
  for (const unsigned members : {2u, 3u, 7u}) {
    for (const std::size_t element : {std::size_t{1}, std::size_t{8}, std::size_t{24}}) {
      for (const std::uint64_t bytes : {std::uint64_t{element * 3000}, std::uint64_t{element * 40'001}}) {
        const Plan plan = plan_for(without_reads(
            {CollectiveKind::allreduce, members, bytes, element, true, {.slices_from = 0, .pairwise_from = 0}}));
        ASSERT_EQ(plan.algorithm, Algorithm::slices);
        std::uint64_t next = 0;
        for (std::uint64_t round = 0; round < plan.rounds; ++round) {
          for (unsigned member = 0; member < members; ++member) {
            const Extent slice = slice_of(bytes, element, plan, members, member, round);
            ASSERT_LE(slice.bytes, plan.piece);
            ASSERT_EQ(slice.bytes % element, 0u);
            if (slice.bytes == 0) continue;
            ASSERT_EQ(slice.offset, next);
            next += slice.bytes;
          }
        }
        ASSERT_EQ(next, bytes);
      }
    }
  }
}

}  // namespace
}  // namespace brant::coll
