#include "core/lease.h"

#include <array>
#include <deque>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace brant {
namespace {

using namespace std::chrono_literals;
using Why = Lease::Why;

constexpr Lease::Key kKey{std::byte{42}};
constexpr std::chrono::nanoseconds kPatience = 2s;
constexpr std::chrono::nanoseconds kStep = 10ms;

/// Some processes, and the network between them; time passes in steps.
class Processes {
 public:
  explicit Processes(int count) {
    for (int rank = 0; rank < count; ++rank) ends.emplace_back(rank, count, kPatience, kKey);
    inboxes.resize(ends.size());
    stopped.resize(ends.size());
    verdicts.resize(ends.size());
  }
  /// Each of the first two watches the other.
  static Processes pair() {
    Processes both(2);
    both.ends[0].watch(1);
    both.ends[1].watch(0);
    return both;
  }

  void run(std::chrono::nanoseconds time) {
    for (const TimePoint end = now + time; now < end; now += kStep) {
      for (std::size_t rank = 0; rank < ends.size(); ++rank) {
        if (!stopped[rank]) step(rank);
      }
    }
  }
  [[nodiscard]] std::vector<int> lost(std::size_t rank) const {
    std::vector<int> ranks;
    for (const Lease::Verdict& verdict : verdicts[rank]) ranks.push_back(verdict.rank);
    return ranks;
  }

  TimePoint now{1h};
  std::vector<Lease> ends;
  std::vector<std::deque<Lease::Datagram>> inboxes;
  std::vector<bool> stopped;
  std::vector<std::vector<Lease::Verdict>> verdicts;
  std::function<bool(std::size_t from, std::size_t to)> passes = [](std::size_t, std::size_t) { return true; };

 private:
  void step(std::size_t rank) {
    for (const Lease::Datagram& datagram : std::exchange(inboxes[rank], {})) {
      if (const auto reply = ends[rank].hear(datagram)) post(rank, *reply);
    }
    if (now >= ends[rank].next()) {
      for (const Lease::Outgoing& ping : ends[rank].tick(now)) post(rank, ping);
    }
    for (const Lease::Verdict& verdict : ends[rank].take_verdicts()) verdicts[rank].push_back(verdict);
  }
  void post(std::size_t from, const Lease::Outgoing& outgoing) {
    const auto to = static_cast<std::size_t>(outgoing.rank);
    if (passes(from, to)) inboxes[to].push_back(outgoing.datagram);
  }
};

TEST(Lease, those_who_answer_are_kept) {
  Processes pair = Processes::pair();
  pair.run(20 * kPatience);
  EXPECT_TRUE(pair.lost(0).empty());
  EXPECT_TRUE(pair.lost(1).empty());
  EXPECT_EQ(pair.ends[0].dropped(), 0u);
}

TEST(Lease, those_who_are_cut_off_lose_each_other_within_the_lease_and_once) {
  Processes pair = Processes::pair();
  pair.run(1s);
  pair.passes = [](auto, auto) { return false; };
  pair.run(kPatience * 3 / 4);
  EXPECT_TRUE(pair.lost(0).empty()) << "less than a lease is not a lease";
  pair.run(kPatience / 4 + 2 * pair.ends[0].period());
  EXPECT_EQ(pair.lost(0), std::vector{1});
  EXPECT_EQ(pair.verdicts[0].at(0).why, Why::silent);
  EXPECT_EQ(pair.lost(1), std::vector{0});
  pair.passes = [](auto, auto) { return true; };
  pair.run(kPatience);
  EXPECT_EQ(pair.lost(0).size(), 1u);
}

TEST(Lease, where_only_one_direction_is_cut_both_lose_each_other) {
  Processes pair = Processes::pair();
  pair.run(1s);
  pair.passes = [](std::size_t from, std::size_t) { return from == 0; };
  pair.run(kPatience + 1s);
  EXPECT_EQ(pair.lost(0), std::vector{1});
  EXPECT_EQ(pair.lost(1), std::vector{0});
}

TEST(Lease, one_that_was_stopped_too_long_learns_that_it_is_lost) {
  Processes pair = Processes::pair();
  pair.run(1s);
  pair.stopped[1] = true;
  pair.run(kPatience + 1s);
  EXPECT_EQ(pair.lost(0), std::vector{1});
  pair.stopped[1] = false;
  pair.run(1s);
  EXPECT_EQ(pair.lost(1), std::vector{0});
  EXPECT_EQ(pair.verdicts[1].at(0).why, Why::told);
}

TEST(Lease, one_that_watches_nobody_learns_it_as_well) {
  Processes both(2);
  both.ends[0].watch(1);
  both.run(1s);
  both.stopped[1] = true;
  both.run(kPatience + 1s);
  both.stopped[1] = false;
  both.run(1s);
  EXPECT_EQ(both.lost(1), std::vector{0});
}

TEST(Lease, one_that_was_stopped_for_less_than_the_lease_is_kept_and_counts_that_time_against_nobody) {
  Processes pair = Processes::pair();
  for (int round = 0; round < 5; ++round) {
    pair.run(1s);
    pair.stopped[1] = true;
    pair.run(kPatience * 3 / 4);
    pair.stopped[1] = false;
  }
  pair.run(1s);
  EXPECT_TRUE(pair.lost(0).empty());
  EXPECT_TRUE(pair.lost(1).empty());
}

TEST(Lease, when_all_were_stopped_together_nobody_is_lost) {
  Processes pair = Processes::pair();
  pair.run(1s);
  pair.now += 20 * kPatience;  // the machine was suspended
  pair.run(kPatience);
  EXPECT_TRUE(pair.lost(0).empty());
  EXPECT_TRUE(pair.lost(1).empty());
}

TEST(Lease, a_twentieth_of_the_packets_lost_loses_nobody) {
  Processes pair = Processes::pair();
  std::mt19937 random(7);
  std::uint64_t gone = 0;
  pair.passes = [&](auto, auto) {
    const bool passes = random() % 20 != 0;
    gone += passes ? 0 : 1;
    return passes;
  };
  pair.run(5min);
  EXPECT_TRUE(pair.lost(0).empty());
  EXPECT_TRUE(pair.lost(1).empty());
  EXPECT_GT(gone, 500u);
}

TEST(Lease, an_answer_proves_life_when_it_was_asked_for_however_long_it_took) {
  Lease watcher(0, 2, kPatience, kKey), target(1, 2, kPatience, kKey);
  TimePoint now{1h};
  watcher.watch(1);
  std::deque<Lease::Datagram> answers;
  std::vector<Lease::Verdict> verdicts;
  const auto run = [&](std::chrono::nanoseconds time, std::size_t ticks_under_way) {
    for (const TimePoint end = now + time; now < end; now += watcher.period()) {
      if (answers.size() > ticks_under_way) {
        watcher.hear(answers.front());
        answers.pop_front();
      }
      for (const auto& ping : watcher.tick(now)) answers.push_back(target.hear(ping.datagram)->datagram);
      for (const auto& verdict : watcher.take_verdicts()) verdicts.push_back(verdict);
    }
  };
  run(kPatience, 0);
  run(10 * kPatience, 30);  // three quarters of a lease
  EXPECT_TRUE(verdicts.empty());
  run(10 * kPatience, 45);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].why, Why::silent);
}

TEST(Lease, silence_where_no_datagram_ever_got_through_says_nothing) {
  Processes pair = Processes::pair();
  pair.passes = [](auto, auto) { return false; };
  pair.run(kPatience / 2);
  EXPECT_FALSE(pair.ends[0].deaf());
  pair.run(5 * kPatience);
  EXPECT_TRUE(pair.lost(0).empty());
  EXPECT_TRUE(pair.ends[0].deaf());
  pair.passes = [](auto, auto) { return true; };
  pair.run(1s);
  EXPECT_FALSE(pair.ends[0].deaf());
  pair.run(kPatience);
  EXPECT_TRUE(pair.lost(0).empty()) << "what was silent before counts for nothing";
  pair.passes = [](auto, auto) { return false; };
  pair.run(kPatience + 1s);
  EXPECT_EQ(pair.lost(0), std::vector{1});
}

TEST(Lease, one_that_never_answered_is_lost_if_others_do) {
  Processes three(3);
  three.ends[0].watch(1);
  three.ends[0].watch(2);
  three.stopped[2] = true;
  three.run(kPatience + 1s);
  EXPECT_EQ(three.lost(0), std::vector{2});
  EXPECT_EQ(three.verdicts[0].at(0).why, Why::never_answered);
}

TEST(Lease, an_answered_probe_makes_silence_mean_something_and_probes_end_with_it) {
  Processes three(3);
  three.ends[0].probe(1);
  int probes = 0;
  three.passes = [&](std::size_t from, std::size_t) {
    probes += from == 0 ? 1 : 0;
    return true;
  };
  three.run(1s);
  EXPECT_EQ(probes, 1);
  EXPECT_EQ(three.ends[0].next(), kNever) << "an idle thread sleeps";
  three.ends[0].watch(2);
  three.stopped[2] = true;
  three.run(kPatience + 1s);
  EXPECT_EQ(three.lost(0), std::vector{2});
}

TEST(Lease, a_refusal_counts_when_it_lasts_and_no_answer_came_after_it) {
  Processes pair = Processes::pair();
  pair.run(1s);
  const auto period = pair.ends[0].period();
  for (int round = 0; round < 20; ++round) {  // forged: it goes on answering
    pair.ends[0].refused(1);
    pair.run(period);
  }
  EXPECT_TRUE(pair.lost(0).empty());
  pair.stopped[1] = true;
  pair.run(2 * kStep);
  for (int round = 0; round < 4; ++round) {
    pair.ends[0].refused(1);
    pair.run(period);
  }
  EXPECT_EQ(pair.lost(0), std::vector{1});
  EXPECT_EQ(pair.verdicts[0].at(0).why, Why::refused);
}

TEST(Lease, refusals_by_one_that_never_answered_may_be_a_firewalls) {
  Processes pair = Processes::pair();
  pair.stopped[1] = true;
  for (int round = 0; round < 8; ++round) {
    pair.run(pair.ends[0].period());
    pair.ends[0].refused(1);
  }
  EXPECT_TRUE(pair.lost(0).empty());
}

TEST(Lease, one_given_up_by_other_means_is_told_when_it_is_heard) {
  Processes pair = Processes::pair();
  pair.run(1s);
  pair.ends[0].give_up(1);
  pair.run(1s);
  EXPECT_TRUE(pair.lost(0).empty()) << "no news here";
  EXPECT_EQ(pair.lost(1), std::vector{0});
}

TEST(Lease, what_is_cut_short_changed_foreign_or_replayed_has_no_effect) {
  const TimePoint now{1h};
  Lease watcher(0, 2, kPatience, kKey), target(1, 2, kPatience, kKey), stranger(1, 2, kPatience, Lease::Key{});
  watcher.watch(1);
  const Lease::Datagram ping = watcher.tick(now)[0].datagram;
  const Lease::Datagram answer = target.hear(ping)->datagram;
  std::uint64_t dropped = 0;
  const auto refuse = [&](std::span<const std::byte> datagram) {
    EXPECT_FALSE(watcher.hear(datagram));
    EXPECT_EQ(watcher.dropped(), ++dropped);
  };
  for (std::size_t bytes = 0; bytes < answer.size(); ++bytes) refuse(std::span(answer).first(bytes));
  for (std::size_t i = 0; i < answer.size(); ++i) {
    Lease::Datagram changed = answer;
    changed[i] ^= std::byte{1};
    refuse(changed);
  }
  std::vector<std::byte> longer(answer.begin(), answer.end());
  longer.push_back({});
  refuse(longer);
  EXPECT_FALSE(stranger.hear(ping)) << "another job's key";
  refuse(ping);  // its own, sent back
  EXPECT_FALSE(watcher.hear(answer));
  EXPECT_EQ(watcher.dropped(), dropped);
  refuse(answer);
  EXPECT_TRUE(watcher.take_verdicts().empty());
}

TEST(Lease, old_answers_that_are_replayed_keep_nobody_alive) {
  Processes pair = Processes::pair();
  pair.run(1s);
  pair.stopped[1] = true;
  const Lease::Datagram ping = pair.ends[0].tick(pair.now)[0].datagram;
  const Lease::Datagram answer = pair.ends[1].hear(ping)->datagram;
  for (std::chrono::nanoseconds time{}; time < kPatience + 1s; time += 100ms) {
    pair.inboxes[0].push_back(answer);
    pair.run(100ms);
  }
  EXPECT_EQ(pair.lost(0), std::vector{1});
  EXPECT_GT(pair.ends[0].dropped(), 10u);
}

TEST(Lease, random_bytes_are_dropped) {
  Lease lease(0, 2, kPatience, kKey);
  std::mt19937 random(3);
  Lease::Datagram bytes;
  for (int i = 0; i < 2000; ++i) {
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    EXPECT_FALSE(lease.hear(std::span(bytes).first(random() % (bytes.size() + 1))));
  }
  EXPECT_EQ(lease.dropped(), 2000u);
}

}  // namespace
}  // namespace brant
