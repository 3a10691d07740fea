// When members of a file exchange their data, and who takes care of which bytes then.
#include "models/mpi/files/exchange_plan.h"

#include <vector>

#include <gtest/gtest.h>

namespace brant::mpi::test {
namespace {

/// Every fourth number of a file, from a member's own on.
std::vector<AccessPart> interleaved(std::int64_t numbers, std::uint64_t run_bytes = 4) {
  std::vector<AccessPart> parts(4);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto run = static_cast<std::int64_t>(run_bytes);
    const std::int64_t begin = 1000 + static_cast<std::int64_t>(i) * run;
    const auto bytes = static_cast<std::uint64_t>(numbers) * run_bytes;
    parts[i] = {.begin = begin,
                .end = begin + ((numbers - 1) * 4 + 1) * run,
                .bytes = bytes,
                .run_bytes = run_bytes,
                .can_exchange = 1};
  }
  return parts;
}

TEST(ExchangePlan, is_made_for_small_runs_that_lie_among_each_other) {
  EXPECT_TRUE(exchange_pays(interleaved(1000)));
  EXPECT_FALSE(exchange_pays(interleaved(10))) << "there are only 40 of them";
  EXPECT_FALSE(exchange_pays(interleaved(1000, 1 << 20))) << "they are large";
  std::vector<AccessPart> parts = interleaved(1000);
  parts[2].bytes = 0;
  EXPECT_TRUE(exchange_pays(parts)) << "three of them are enough";
  parts[0].bytes = parts[1].bytes = 0;
  EXPECT_FALSE(exchange_pays(parts)) << "one has it all";
}

TEST(ExchangePlan, is_not_made_where_one_cannot_or_there_is_little_between_far_ends) {
  std::vector<AccessPart> parts = interleaved(1000);
  parts[3].can_exchange = 0;
  EXPECT_FALSE(exchange_pays(parts));
  parts = interleaved(1000);
  parts[1].end = std::int64_t{1} << 40;
  EXPECT_FALSE(exchange_pays(parts));
  parts = interleaved(1000);
  for (std::size_t i = 0; i < parts.size(); ++i) {  // one behind the other
    parts[i].begin = static_cast<std::int64_t>(i) * 8000;
    parts[i].end = parts[i].begin + 8000;
  }
  EXPECT_FALSE(exchange_pays(parts));
  EXPECT_FALSE(exchange_pays(std::vector<AccessPart>(4))) << "there is nothing to do";
}

TEST(ExchangePlan, has_a_stretch_of_one_member_for_each_byte) {
  for (const std::size_t members : {2u, 4u, 100u, 5000u}) {
    std::vector<AccessPart> parts(members, {.begin = 123'456'789, .end = 1'234'567'890, .bytes = 1, .run_bytes = 1});
    const Stretches stretches(parts);
    ASSERT_LE(stretches.begin(0, 0), 123'456'789);
    std::int64_t next = stretches.begin(0, 0);
    EXPECT_EQ(next % static_cast<std::int64_t>(stretches.bytes()), 0);
    for (std::uint64_t round = 0; round < stretches.rounds(); ++round) {
      for (std::size_t member = 0; member < members; ++member) {
        ASSERT_EQ(stretches.begin(round, member), next);
        next += static_cast<std::int64_t>(stretches.bytes());
      }
    }
    EXPECT_GE(next, 1'234'567'890);
    EXPECT_LT(next - static_cast<std::int64_t>(members * stretches.bytes()), 1'234'567'890) << "no round is idle";
  }
}

}  // namespace
}  // namespace brant::mpi::test
