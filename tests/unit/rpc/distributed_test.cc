#include "brant/ops/rpc/distributed.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/rpc/service.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;
using Table = std::map<std::string, int>;

std::size_t insert(DistributedRef<Table> table, std::string key, int value) {
  table->emplace(std::move(key), value);
  return table->size();
}
void add_to(Caller caller, DistributedRef<int> sum, int more) { *sum += more * (1 + caller.rank.value); }

struct Objects {
  template <typename T>
  T result(Future<T> future) {
    EXPECT_TRUE(job.run_until([&] { return future.ready(); }));
    return future.get();
  }
  [[nodiscard]] std::size_t lent(int rank) {
    job.run(50);
    return job.rank(rank).worker().engine().service<am::Messenger>().lent();
  }

  InProcessJob job;
  Rpc left{job.rank(0)}, right{job.rank(1)};
};

TEST(Distributed, functions_see_the_part_of_their_process) {
  Objects ranks;
  Distributed<Table> mine(ranks.left);
  Distributed<Table> theirs(ranks.right);
  EXPECT_EQ(ranks.result(ranks.left.call<&insert>(Rank{1}, mine, "a", 1)), 1u);
  EXPECT_EQ(ranks.result(ranks.left.call<&insert>(Rank{0}, mine, "b", 2)), 1u);
  EXPECT_EQ(*theirs, (Table{{"a", 1}}));
  EXPECT_EQ(*mine, (Table{{"b", 2}}));
  EXPECT_EQ(ranks.result(mine.fetch(Rank{1})), *theirs);
  EXPECT_EQ(ranks.result(theirs.fetch(Rank{1})), *theirs);
}

TEST(Distributed, calls_wait_for_a_part_that_is_yet_to_be_made) {
  Objects ranks;
  Distributed<std::string> first(ranks.left, "first");
  Distributed<int> mine(ranks.left, 0);
  Future<int> value = mine.fetch(Rank{1});
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ranks.left.tell<&add_to>(Rank{1}, mine, i), Status::ok);
  ranks.job.run(50);
  EXPECT_FALSE(value.ready());
  Distributed<std::string> their_first(ranks.right, "their first");
  ranks.job.run(50);
  EXPECT_FALSE(value.ready());
  Distributed<int> theirs(ranks.right, 7);
  EXPECT_EQ(ranks.result(std::move(value)), 7) << "it came before those that add";
  ASSERT_TRUE(ranks.job.run_until([&] { return *theirs == 7 + 4950; }));
  EXPECT_EQ(ranks.lent(0), 0u);
  EXPECT_EQ(ranks.lent(1), 0u);
}

TEST(Distributed, who_waits_for_a_part_that_is_never_made_is_told_at_the_end) {
  Objects ranks;
  Distributed<std::vector<int>> theirs(ranks.right, 50'000);
  Future<std::vector<int>> value = theirs.fetch(Rank{0});
  EXPECT_EQ(ranks.right.tell<[](DistributedRef<std::vector<int>>) {}>(Rank{0}, theirs), Status::ok);
  ranks.job.run(50);
  EXPECT_FALSE(value.ready());
  ranks.left.service().part_from(ranks.job.rank(0).worker().engine().peers()[1]);
  EXPECT_THROW(static_cast<void>(ranks.result(std::move(value))), Error);
  EXPECT_EQ(ranks.lent(0), 0u);
}

TEST(Distributed, parts_of_other_types_and_parts_that_have_gone) {
  Objects ranks;
  Distributed<int> mine(ranks.left, 1);
  std::optional<Distributed<std::string>> theirs(std::in_place, ranks.right, "one");
  for (const Status expected : {Status::invalid_argument, Status::not_found}) {
    Future<int> value = mine.fetch(Rank{1});
    try {
      static_cast<void>(ranks.result(std::move(value)));
      ADD_FAILURE() << "it was found";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), expected) << error.what();
    }
    theirs.reset();
  }
}

}  // namespace
}  // namespace brant
