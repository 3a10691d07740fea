// Runs as every rank of a job (`brant run -n N`): the same sums again and again, whoever comes first, in teams of every
// order, by every way, and beside a thread that keeps a core busy. The bits are those of a sum in the order of ranks.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/team.h"
#include "ops/coll/fold.h"
#include "support/effort.h"
#include "support/job_runtime.h"
#include "support/shared_host.h"

namespace brant {
namespace {

/// Before the runtime is opened: several processes are one host, so that teams reach over several.
test::SharedHost g_shared_host;
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): it ends the program where it throws
[[maybe_unused]] const bool g_pairs = g_shared_host.join_if_told();

using test::job;
using Bytes = std::vector<std::byte>;

int size() { return job().size(); }
int self() { return job().rank().value; }

/// Numbers whose sum depends on the order in which they are added, as rank `rank` gives them.
Bytes gift(int rank, DataType type, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) * 101 + 7);
  constexpr float kSizes[] = {1e8f, 1.0f, -1e8f, 1.0f, 0.3f};
  Bytes data(count * data_type_bytes(type));
  for (std::size_t i = 0; i < count; ++i) {
    const float value = kSizes[(i + static_cast<std::size_t>(rank)) % 5] * (1 + static_cast<float>(random() % 7));
    if (type == DataType::f32) {
      std::memcpy(&data[i * 4], &value, 4);
    } else if (type == DataType::f64) {
      const double wide = static_cast<double>(value) * 1e9;
      std::memcpy(&data[i * 8], &wide, 8);
    } else {
      std::uint32_t bits = 0;  // bf16: the upper half of a float
      std::memcpy(&bits, &value, 4);
      const auto half = static_cast<std::uint16_t>(bits >> 16);
      std::memcpy(&data[i * 2], &half, 2);
    }
  }
  return data;
}

/// The sum of what these ranks give, in this order.
Bytes sum_of(const std::vector<int>& ranks, DataType type, std::size_t count) {
  std::vector<Bytes> gifts;
  std::vector<const void*> inputs;
  gifts.reserve(ranks.size());
  inputs.reserve(ranks.size());
  for (const int rank : ranks) inputs.push_back(gifts.emplace_back(gift(rank, type, count)).data());
  Bytes sum(count * data_type_bytes(type));
  coll::fold({type, ReduceOp::sum, nullptr}, inputs, sum.data(), count);
  return sum;
}

std::vector<int> all_ranks() {
  std::vector<int> ranks(static_cast<std::size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Collective sum(const Bytes& in, Bytes& out, DataType type) {
  return allreduce(ConstBuffer(in.data(), in.size(), MemoryKind::host),
                   Buffer(out.data(), out.size(), MemoryKind::host), type, ReduceOp::sum);
}

struct Kind {
  DataType type;
  std::size_t count;
};
constexpr Kind kKinds[] = {{DataType::f32, 2}, {DataType::bf16, 9000}, {DataType::f64, 700}, {DataType::bf16, 3}};

TEST(Rounds, a_thousand_sums_have_the_same_bits_whoever_comes_first) {
  Team team = Team::world(job(), {.patience = std::chrono::seconds(60)}),
       by_messages = Team::world(job(), {.patience = std::chrono::seconds(60), .way = TeamWay::messages});
  std::vector<Bytes> expected, own;
  for (const Kind& kind : kKinds) {
    expected.push_back(sum_of(all_ranks(), kind.type, kind.count));
    own.push_back(gift(self(), kind.type, kind.count));
  }
  std::mt19937 random(static_cast<unsigned>(self()));
  const int rounds = test::effort(1000, 100);
  for (int round = 0; round < rounds; ++round) {
    const std::size_t which = static_cast<std::size_t>(round) % std::size(kKinds);
    Bytes out(own[which].size());
    // Each member comes at a time of its own.
    for (auto i = random() % 200; i != 0; --i) job().worker().progress();
    Team& by = round % 5 == 4 ? by_messages : team;
    ASSERT_TRUE(by.run(sum(own[which], out, kKinds[which].type)).ok()) << by.fault();
    ASSERT_EQ(out, expected[which]) << "round " << round;
  }
}

TEST(Rounds, teams_of_every_order_add_in_theirs) {
  std::vector<int> order = all_ranks();
  do {
    std::vector<Rank> members;
    members.reserve(order.size());
    for (const int rank : order) members.push_back(Rank{rank});
    for (const TeamWay way : {TeamWay::automatic, TeamWay::messages, TeamWay::slots}) {
      if (g_pairs && way == TeamWay::slots) continue;  // not all share memory
      Team team(job(), members, {.patience = std::chrono::seconds(60), .way = way});
      for (const Kind& kind : kKinds) {
        const Bytes own = gift(self(), kind.type, kind.count);
        Bytes out(own.size());
        ASSERT_TRUE(team.run(sum(own, out, kind.type)).ok()) << team.fault();
        ASSERT_EQ(out, sum_of(order, kind.type, kind.count)) << team_way_name(way);
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

/// Any order: the same bits at all members, and near the sum.
void try_free_order(TeamWay way) {
  Team team = Team::world(job(), {.patience = std::chrono::seconds(60), .way = way, .sum_order = SumOrder::free});
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{30'000}}) {
    std::vector<double> own(count, 0.1 * (self() + 1)), out(count);
    ASSERT_TRUE(team.run(allreduce(std::span<const double>(own), std::span(out), ReduceOp::sum)).ok()) << team.fault();
    const double near = 0.1 * size() * (size() + 1) / 2;
    std::vector<double> least(count), most(count);
    ASSERT_TRUE(team.run(allreduce(std::span<const double>(out), std::span(least), ReduceOp::min)).ok());
    ASSERT_TRUE(team.run(allreduce(std::span<const double>(out), std::span(most), ReduceOp::max)).ok());
    ASSERT_EQ(least, most) << count;
    ASSERT_TRUE(std::all_of(out.begin(), out.end(), [&](double each) { return std::abs(each - near) < 1e-12; }));
    std::vector<std::int32_t> whole(count, self() + 1), sum(count);
    ASSERT_TRUE(team.run(reduce_to(ConstBuffer(whole.data(), count * 4, MemoryKind::host),
                                   Buffer(sum.data(), count * 4, MemoryKind::host), DataType::i32, ReduceOp::sum, 0))
                    .ok());
    if (self() == 0) {
      ASSERT_EQ(sum, std::vector<std::int32_t>(count, size() * (size() + 1) / 2));
    }
  }
}

TEST(Rounds, a_free_order_gives_all_members_the_same_bits) {
  try_free_order(TeamWay::automatic);
  // By many rounds of what each host gives in sum.
  if (g_pairs) try_free_order(TeamWay::hosts);
}

/// A product of matrices that a thread of the program goes on with.
class Multiplier {
 public:
  Multiplier() : thread_([this] { run(); }) {}
  ~Multiplier() { end(); }
  std::uint64_t end() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
    return products_;
  }

 private:
  void run() {
    constexpr std::size_t kEdge = 48;
    std::vector<double> a(kEdge * kEdge, 1.5), b(kEdge * kEdge, 0.5), c(kEdge * kEdge);
    while (!ended_) {
      for (std::size_t i = 0; i < kEdge; ++i) {
        for (std::size_t k = 0; k < kEdge; ++k) {
          for (std::size_t j = 0; j < kEdge; ++j) c[i * kEdge + j] += a[i * kEdge + k] * b[k * kEdge + j];
        }
      }
      ++products_;
    }
  }

  std::atomic<bool> ended_{false};
  std::atomic<std::uint64_t> products_{0};
  std::thread thread_;
};

TEST(Rounds, go_on_beside_a_thread_that_computes) {
  Team team = Team::world(job(), {.patience = std::chrono::seconds(60)}),
       other = Team::world(job(), {.patience = std::chrono::seconds(60)});
  const Bytes own = gift(self(), DataType::f32, 5000), expected = sum_of(all_ranks(), DataType::f32, 5000);
  Multiplier busy;
  for (int round = 0; round < test::effort(200, 40); ++round) {
    Bytes first(own.size()), second(own.size());
    Operation one = team.start(sum(own, first, DataType::f32));
    Operation two = other.start(sum(own, second, DataType::f32));
    ASSERT_TRUE(job().wait_for(std::chrono::seconds(60), two).ok()) << other.fault();
    ASSERT_TRUE(job().wait_for(std::chrono::seconds(60), one).ok()) << team.fault();
    ASSERT_EQ(first, expected) << round;
    ASSERT_EQ(second, expected) << round;
  }
  EXPECT_GT(busy.end(), 0u);
}

}  // namespace
}  // namespace brant
