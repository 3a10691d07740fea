// The steps of collectives by messages, played by all members in one thread: each message that is awaited was sent,
// none is left over, and the result is that of one process.
#include "ops/coll/message_steps.h"

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/coll/shrinking.h"

namespace brant::coll {
namespace {

using Bytes = std::vector<std::byte>;

/// One member, with the messages that wait for it.
struct Player {
  Members members;
  Work work;
  Plan plan;
  std::vector<std::deque<Bytes>> inbox, held;
  std::vector<Step> steps;
  std::size_t next = 0;
  std::uint64_t round = 0;
  Bytes result;
};

class Stage {
 public:
  explicit Stage(const std::vector<Collective>& calls, const Bands& bands) : players_(calls.size()) {
    const auto count = static_cast<unsigned>(calls.size());
    for (unsigned m = 0; m < count; ++m) {
      Player& player = players_[m];
      player.members = {count, m};
      std::string why;
      EXPECT_EQ(make_work(calls[m], player.members, player.work, why), Status::ok) << why;
      const Work& work = player.work;
      player.plan = plan_for({work.kind, count, work.bytes, work.element, false, bands, false, work.uneven});
      player.inbox.resize(count);
      player.held.resize(count);
      EXPECT_EQ(player.work.words, players_[0].work.words);
      if (!work.uneven) {
        EXPECT_EQ(player.plan, players_[0].plan);
      }
    }
  }

  /// False: somebody waits for what nobody sends, or something was left over.
  bool play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Player& player : players_) {
        while (step(player)) moved = true;
      }
    }
    for (const Player& player : players_) {
      if (player.next != player.steps.size() || player.round != player.plan.rounds) return false;
      for (const auto& box : player.inbox) {
        if (!box.empty()) return false;
      }
    }
    return true;
  }

 private:
  bool step(Player& player) {
    while (player.next == player.steps.size()) {
      if (player.round == player.plan.rounds) return false;
      player.steps.clear();
      player.next = 0;
      add_steps(player.members, player.work, player.plan, player.round++, player.steps);
    }
    const Step& step = player.steps[player.next];
    const auto bytes = static_cast<std::size_t>(step.bytes);
    if (step.what == Step::What::send) {
      const std::byte* from = step.from == nullptr ? player.result.data() : step.from;
      players_[step.peer].inbox[player.members.self].emplace_back(from, from + bytes);
    } else if (step.what == Step::What::receive || step.what == Step::What::hold) {
      auto& box = player.inbox[step.peer];
      if (box.empty()) return false;
      EXPECT_EQ(box.front().size(), bytes);
      if (step.what == Step::What::hold) {
        player.held[step.peer].push_back(box.front());
      } else if (bytes != 0) {
        std::memcpy(step.to, box.front().data(), bytes);
      }
      box.pop_front();
    } else if (step.what == Step::What::combine) {
      std::vector<const void*> inputs;
      for (unsigned m = 0; m < step.peer; ++m) {
        inputs.push_back(m == player.members.self ? step.from : player.held[m].front().data());
      }
      player.result.resize(bytes);
      fold(player.work.folding, inputs, step.to == nullptr ? player.result.data() : step.to,
           step.bytes / player.work.element);
      for (auto& kept : player.held) kept.clear();
    } else {
      std::memmove(step.to, step.from, bytes);
    }
    ++player.next;
    return true;
  }

  std::vector<Player> players_;
};

using Values = std::vector<std::int32_t>;

struct Given {
  Given(unsigned members, std::size_t in_count, std::size_t out_count)
      : in(members, Values(in_count)), out(members, Values(out_count, -1)) {
    for (unsigned m = 0; m < members; ++m) {
      for (std::size_t i = 0; i < in_count; ++i) in[m][i] = static_cast<std::int32_t>(i * 7 + m * 1000);
    }
  }
  [[nodiscard]] ConstBuffer from(unsigned m) const { return {in[m].data(), in[m].size() * 4}; }
  [[nodiscard]] Buffer to(unsigned m) { return {out[m].data(), out[m].size() * 4}; }
  [[nodiscard]] std::int32_t sum(unsigned members, std::size_t i) const {
    std::int32_t total = 0;
    for (unsigned m = 0; m < members; ++m) total += in[m][i];
    return total;
  }
  std::vector<Values> in, out;
};

class MessageSteps : public testing::TestWithParam<unsigned> {
 protected:
  /// All sizes, by either algorithm where there are two.
  template <typename Play>
  void for_all(Play&& play) const {
    for (const std::size_t count : {0u, 1u, 5u, 1000u, 300'000u}) {
      for (const std::uint64_t from : {std::uint64_t{0}, std::uint64_t{1} << 40})
        play(count, Bands{.pairwise_from = from});
    }
  }
};

TEST_P(MessageSteps, allreduce_and_reduce) {
  const unsigned n = GetParam();
  for_all([&](std::size_t count, const Bands& bands) {
    Given given(n, count, count);
    std::vector<Collective> calls;
    for (unsigned m = 0; m < n; ++m)
      calls.push_back(allreduce(given.from(m), given.to(m), DataType::i32, ReduceOp::sum));
    ASSERT_TRUE(Stage(calls, bands).play()) << count;
    for (unsigned m = 0; m < n; ++m) {
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(given.out[m][i], given.sum(n, i));
    }
    for (unsigned root = 0; root < n; ++root) {
      Given again(n, count, count);
      calls.clear();
      for (unsigned m = 0; m < n; ++m)
        calls.push_back(reduce_to(again.from(m), again.to(m), DataType::i32, ReduceOp::sum, static_cast<int>(root)));
      ASSERT_TRUE(Stage(calls, bands).play()) << count;
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(again.out[root][i], again.sum(n, i));
    }
  });
}

TEST_P(MessageSteps, broadcast_and_barrier) {
  const unsigned n = GetParam();
  EXPECT_TRUE(Stage(std::vector<Collective>(n, barrier()), {}).play());
  for (unsigned root = 0; root < n; ++root) {
    for_all([&](std::size_t count, const Bands& bands) {
      Given given(n, count, 0);
      std::vector<Collective> calls;
      for (unsigned m = 0; m < n; ++m)
        calls.push_back(broadcast(Buffer(given.in[m].data(), count * 4), static_cast<int>(root)));
      const Values expected = given.in[root];
      ASSERT_TRUE(Stage(calls, bands).play());
      for (unsigned m = 0; m < n; ++m) ASSERT_EQ(given.in[m], expected);
    });
  }
}

TEST_P(MessageSteps, blocks) {
  const unsigned n = GetParam();
  for_all([&](std::size_t count, const Bands& bands) {
    if (count > 1000 && n > 4) return;
    Given given(n, count, count * n);
    std::vector<Collective> calls;
    for (unsigned m = 0; m < n; ++m) calls.push_back(allgather(given.from(m), given.to(m)));
    ASSERT_TRUE(Stage(calls, bands).play());
    for (unsigned m = 0; m < n; ++m) {
      for (unsigned k = 0; k < n; ++k) {
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(given.out[m][k * count + i], given.in[k][i]);
      }
    }
    Given pairs(n, count * n, count * n), sums(n, count * n, count);
    std::vector<Collective> exchanges, combined;
    for (unsigned m = 0; m < n; ++m) {
      exchanges.push_back(alltoall(pairs.from(m), pairs.to(m)));
      combined.push_back(reduce_scatter(sums.from(m), sums.to(m), DataType::i32, ReduceOp::sum));
    }
    ASSERT_TRUE(Stage(exchanges, bands).play());
    ASSERT_TRUE(Stage(combined, bands).play());
    for (unsigned m = 0; m < n; ++m) {
      for (std::size_t i = 0; i < count; ++i) {
        for (unsigned k = 0; k < n; ++k) ASSERT_EQ(pairs.out[m][k * count + i], pairs.in[k][m * count + i]);
        ASSERT_EQ(sums.out[m][i], sums.sum(n, m * count + i));
      }
    }
  });
}

/// Sizes that only the two ends of a block know.
TEST_P(MessageSteps, blocks_of_different_sizes) {
  const unsigned n = GetParam();
  using Sizes = std::vector<std::uint64_t>;
  for (const std::size_t unit : {0u, 1u, 70'000u}) {
    const auto count = [&](unsigned from, unsigned to) { return unit * ((from * 3 + to) % 4); };
    std::vector<Sizes> gives(n, Sizes(n)), gets(n, Sizes(n));
    std::vector<Values> in(n), out(n), expected(n);
    for (unsigned m = 0; m < n; ++m) {
      for (unsigned k = 0; k < n; ++k) {
        gives[m][k] = 4 * count(m, k);
        gets[m][k] = 4 * count(k, m);
        in[m].resize(in[m].size() + count(m, k), static_cast<std::int32_t>(m * 100 + k));
        expected[m].resize(expected[m].size() + count(k, m), static_cast<std::int32_t>(k * 100 + m));
      }
      out[m].resize(expected[m].size(), -1);
    }
    std::vector<Collective> exchanges;
    for (unsigned m = 0; m < n; ++m) {
      exchanges.push_back(alltoallv(ConstBuffer(in[m].data(), in[m].size() * 4), gives[m],
                                    Buffer(out[m].data(), out[m].size() * 4), gets[m]));
    }
    ASSERT_TRUE(Stage(exchanges, {}).play()) << unit;
    ASSERT_EQ(out, expected) << unit;
    const unsigned root = n - 1;
    Values gathered(expected[root].size(), -1);
    std::vector<Values> back(n);
    std::vector<Collective> gathers, scatters;
    for (unsigned m = 0; m < n; ++m) {
      const std::size_t own = count(m, root);
      back[m].resize(own, -1);
      std::size_t first = 0;
      for (unsigned k = 0; k < root; ++k) first += count(m, k);
      gathers.push_back(
          gatherv(ConstBuffer(in[m].data() + first, own * 4),
                  m == root ? Buffer(gathered.data(), gathered.size() * 4) : Buffer(),
                  m == root ? std::span<const std::uint64_t>(gets[root]) : std::span<const std::uint64_t>(),
                  static_cast<int>(root)));
      scatters.push_back(
          scatterv(m == root ? ConstBuffer(gathered.data(), gathered.size() * 4) : ConstBuffer(),
                   m == root ? std::span<const std::uint64_t>(gets[root]) : std::span<const std::uint64_t>(),
                   Buffer(back[m].data(), own * 4), static_cast<int>(root)));
    }
    ASSERT_TRUE(Stage(gathers, {}).play()) << unit;
    ASSERT_EQ(gathered, expected[root]) << unit;
    ASSERT_TRUE(Stage(scatters, {}).play()) << unit;
    for (unsigned m = 0; m < n; ++m)
      ASSERT_EQ(back[m], Values(count(m, root), static_cast<std::int32_t>(m * 100 + root))) << unit;
  }
}

/// Each gives to the next one and, along two edges, to itself; the first of equal edges fits the first of the others.
TEST_P(MessageSteps, neighbours) {
  const auto n = static_cast<std::int32_t>(GetParam());
  for (const std::size_t count : {std::size_t{1}, std::size_t{50'000}}) {
    std::vector<std::vector<std::int32_t>> sources, destinations;
    Given pairs(GetParam(), 3 * count, 3 * count);
    std::vector<Collective> calls;
    for (std::int32_t m = 0; m < n; ++m) {
      sources.push_back({m, (m + n - 1) % n, m});
      destinations.push_back({m, m, (m + 1) % n});
    }
    for (unsigned m = 0; m < GetParam(); ++m)
      calls.push_back(neighbour_alltoall(pairs.from(m), pairs.to(m), {sources[m], destinations[m]}));
    ASSERT_TRUE(Stage(calls, {}).play());
    for (unsigned m = 0; m < GetParam(); ++m) {
      const unsigned before = (m + GetParam() - 1) % GetParam();
      // Of one member alone all edges are its own, in order.
      const std::size_t blocks[3] = {0, n == 1 ? 1u : 2u, n == 1 ? 2u : 1u};
      const unsigned from[3] = {m, before, m};
      for (std::size_t edge = 0; edge < 3; ++edge) {
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(pairs.out[m][edge * count + i], pairs.in[from[edge]][blocks[edge] * count + i]) << edge;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Members, MessageSteps, testing::Values(1u, 2u, 3u, 4u, 5u, 8u, 9u));

TEST(Shrinking, is_agreed_once_all_that_live_know_the_same) {
  Shrinking zero(4), one(4), three(4);
  EXPECT_TRUE(zero.note_gone(2));
  EXPECT_FALSE(zero.note_gone(2));
  ASSERT_TRUE(one.hear(0, zero.gone()));
  ASSERT_TRUE(three.hear(0, zero.gone()));
  ASSERT_TRUE(zero.hear(1, one.gone()));
  EXPECT_FALSE(zero.is_agreed(0));
  ASSERT_TRUE(zero.hear(3, three.gone()));
  EXPECT_TRUE(zero.is_agreed(0));
  // One more dies meanwhile: what was said before counts no more.
  EXPECT_TRUE(zero.note_gone(3));
  EXPECT_FALSE(zero.is_agreed(0));
  ASSERT_TRUE(one.hear(0, zero.gone()));
  ASSERT_TRUE(zero.hear(1, one.gone()));
  EXPECT_TRUE(zero.is_agreed(0));
  EXPECT_FALSE(zero.hear(1, Bytes(3)));
}

}  // namespace
}  // namespace brant::coll
