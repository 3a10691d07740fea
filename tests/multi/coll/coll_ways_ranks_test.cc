// Runs as every rank of a job (`brant run -n N`): ways that a team's options force. A call goes that way, with the
// right result, or is refused at this member alone.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/team.h"
#include "brant/device.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::job;
using Numbers = std::vector<std::int64_t>;

constexpr std::size_t kCounts[] = {0, 1, 3, 700, 5000, 40'000};

int size() { return job().size(); }
int self() { return job().rank().value; }

Numbers gift(int rank, std::size_t count) {
  Numbers numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<std::int64_t>(i * 3) + std::int64_t{rank} * 1000;
  return numbers;
}
Numbers sum_of(int ranks, std::size_t count) {
  Numbers sum(count);
  for (int rank = 0; rank < ranks; ++rank) {
    const Numbers one = gift(rank, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] += one[i];
  }
  return sum;
}

/// A call on memory of one kind, and what it has to give.
struct Case {
  std::string name;
  std::function<Collective(Buffer in, Buffer out)> call;
  Numbers given, expected;
};

std::vector<Case> cases(std::size_t count) {
  const auto ranks = static_cast<std::size_t>(size());
  constexpr DataType kType = DataType::i64;
  Numbers all, exchanged;
  for (int rank = 0; rank < size(); ++rank) {
    const Numbers whole = gift(rank, count), blocks = gift(rank, count * ranks);
    all.insert(all.end(), whole.begin(), whole.end());
    const auto block = blocks.begin() + static_cast<std::ptrdiff_t>(count) * self();
    exchanged.insert(exchanged.end(), block, block + static_cast<std::ptrdiff_t>(count));
  }
  const Numbers total = sum_of(size(), count * ranks);
  const auto own = total.begin() + static_cast<std::ptrdiff_t>(count) * self();
  return {{"allreduce", [](Buffer in, Buffer out) { return allreduce(in, out, kType, ReduceOp::sum); },
           gift(self(), count), sum_of(size(), count)},
          {"allgather", [](Buffer in, Buffer out) { return allgather(in, out); }, gift(self(), count), all},
          {"alltoall", [](Buffer in, Buffer out) { return alltoall(in, out); }, gift(self(), count * ranks), exchanged},
          {"reduce_scatter", [](Buffer in, Buffer out) { return reduce_scatter(in, out, kType, ReduceOp::sum); },
           gift(self(), count * ranks), Numbers(own, own + static_cast<std::ptrdiff_t>(count))},
          {"scan", [](Buffer in, Buffer out) { return scan(in, out, kType, ReduceOp::sum); }, gift(self(), count),
           sum_of(self() + 1, count)},
          {"broadcast", [](Buffer, Buffer out) { return broadcast(out, 0); }, {}, gift(0, count)}};
}

/// Memory of a kind with these numbers.
Memory memory_of(const Numbers& numbers, std::size_t count, MemoryKind kind) {
  Memory memory = job().allocate(kind, std::max<std::size_t>(count, 1) * sizeof(std::int64_t));
  if (!numbers.empty())
    job().copy(memory, ConstBuffer(numbers.data(), numbers.size() * sizeof(std::int64_t), MemoryKind::host));
  return memory;
}
Buffer part(Memory& memory, std::size_t count) { return {memory.data(), count * sizeof(std::int64_t), memory.kind()}; }
Numbers numbers_in(Memory& memory, std::size_t count) {
  Numbers numbers(count);
  if (count != 0)
    job().copy(Buffer(numbers.data(), count * sizeof(std::int64_t), MemoryKind::host),
               ConstBuffer(memory.data(), count * sizeof(std::int64_t), memory.kind()));
  return numbers;
}

class Ways : public testing::TestWithParam<TeamWay> {};

/// Of reads the first calls with new memory may go another way.
bool is_way(std::string_view algorithm, TeamWay way) {
  if (algorithm == team_way_name(way)) return true;
  if (way == TeamWay::reads) return algorithm == "slots" || algorithm == "slices" || algorithm == "lines";
  return way == TeamWay::messages && (algorithm == "direct" || algorithm == "pairwise" || algorithm == "binomial");
}

TEST_P(Ways, calls_go_that_way_or_are_refused) {
  const TeamWay way = GetParam();
  Team team = Team::world(job(), {.patience = std::chrono::seconds(60), .way = way});
  unsigned carried_out = 0;
  for (const std::size_t count : kCounts) {
    for (const Case& each : cases(count)) {
      Memory in = memory_of(each.given, each.given.size(), MemoryKind::host);
      const bool gives = each.name != "broadcast" || self() == 0;
      Memory out = memory_of(each.name == "broadcast" && gives ? each.expected : Numbers{}, each.expected.size(),
                             MemoryKind::host);
      const Collective call = each.call(part(in, each.given.size()), part(out, each.expected.size()));
      if (team.explain(call).empty()) {
        EXPECT_EQ(team.run(call).status, Status::not_supported) << each.name << " " << count;
        EXPECT_THROW(static_cast<void>(team.prepare(call)), Error);
        continue;
      }
      ASSERT_TRUE(team.run(call).ok()) << each.name << " " << count << ": " << team.fault();
      ASSERT_TRUE(is_way(team.journal().back().algorithm, way)) << each.name << " " << team.journal().back().algorithm;
      ASSERT_EQ(numbers_in(out, each.expected.size()), each.expected) << each.name << " " << count;
      ++carried_out;
    }
    ASSERT_TRUE(team.run(barrier()).ok()) << team.fault();
  }
  EXPECT_GE(carried_out, 6u);
  // What the team itself says to all is not forced.
  Team part_of_it = team.split(0, -self());
  EXPECT_TRUE(part_of_it.run(barrier()).ok());
}

INSTANTIATE_TEST_SUITE_P(Forced, Ways,
                         testing::Values(TeamWay::messages, TeamWay::lines, TeamWay::slots, TeamWay::slices,
                                         TeamWay::reads),
                         [](const auto& way) { return std::string(team_way_name(way.param)); });

TEST(ForcedWay, that_the_members_do_not_have_makes_no_team) {
  if (size() == 1) GTEST_SKIP() << "one member needs no way";
  try {
    Team team = Team::world(job(), {.way = TeamWay::hosts});
    ADD_FAILURE() << "all are on one host";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::not_supported);
    EXPECT_NE(std::string(error.what()).find("hosts"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(Team::world(job()).run(barrier()).ok());
}

TEST(ForcedWay, is_the_same_at_all_members) {
  if (size() == 1) GTEST_SKIP() << "one member alone";
  for (const bool of_streams : {false, true}) {
    TeamOptions options;
    if (self() == 0 && of_streams) options.stream_way = StreamWay::slots;
    if (self() == 0 && !of_streams) options.way = TeamWay::slots;
    try {
      Team team = Team::world(job(), options);
      ADD_FAILURE() << "members want different things";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("slots"), std::string::npos) << error.what();
    }
  }
}

TEST(ForcedWay, reads_few_bytes_too_once_word_of_the_memory_has_come) {
  if (size() == 1) GTEST_SKIP() << "one member alone";
  Team team = Team::world(job(), {.patience = std::chrono::seconds(60), .way = TeamWay::reads});
  Memory memory = memory_of(gift(self(), 40'000), 40'000, MemoryKind::host);
  std::string_view algorithm;
  for (int i = 0; i < 200 && algorithm != "reads"; ++i) {
    ASSERT_TRUE(team.run(allreduce(part(memory, 1), DataType::i64, ReduceOp::max)).ok()) << team.fault();
    algorithm = team.journal().back().algorithm;
    job().worker().progress();
  }
  EXPECT_EQ(algorithm, "reads") << "eight bytes";
  EXPECT_EQ(numbers_in(memory, 1), gift(size() - 1, 1));
}

class StreamWays : public testing::TestWithParam<StreamWay> {};

TEST_P(StreamWays, calls_go_that_way_or_are_refused) {
  if (job().device_kind() == MemoryKind::host) GTEST_SKIP() << "no device";
  const StreamWay way = GetParam();
  Team team = Team::world(job(), {.patience = std::chrono::seconds(60), .stream_way = way});
  if (const OpResult prepared = team.prepare_streams(); !prepared.ok()) {
    ASSERT_EQ(prepared.status, Status::not_supported);
    GTEST_SKIP() << "no devices that map each other's memory";
  }
  Stream stream = job().device().create_stream();
  for (const std::size_t count : kCounts) {
    for (const Case& each : cases(count)) {
      Memory in = memory_of(each.given, each.given.size(), job().device_kind());
      const bool gives = each.name == "broadcast" && self() == 0;
      Memory out = memory_of(gives ? each.expected : Numbers{}, each.expected.size(), job().device_kind());
      const Collective call = each.call(part(in, each.given.size()), part(out, each.expected.size()));
      const std::string told(team.explain_on_stream(call));
      if (told.empty()) {
        EXPECT_EQ(team.enqueue(call, stream), Status::not_supported) << each.name << " " << count;
        continue;
      }
      if (size() > 1) {
        EXPECT_EQ(told, "kernel " + std::string(stream_way_name(way)));
      }
      ASSERT_EQ(team.enqueue(call, stream), Status::ok) << each.name << " " << count;
      ASSERT_EQ(stream.synchronize(), Status::ok);
      ASSERT_EQ(team.fault(), "");
      ASSERT_EQ(numbers_in(out, each.expected.size()), each.expected) << each.name << " " << count << " by " << told;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forced, StreamWays, testing::Values(StreamWay::lines, StreamWay::slots, StreamWay::slices),
                         [](const auto& way) { return std::string(stream_way_name(way.param)); });

}  // namespace
}  // namespace brant
