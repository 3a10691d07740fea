#include "models/mpi/matching.h"

#include <chrono>
#include <deque>
#include <list>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace brant::mpi {
namespace {

bool suits(const MatchKey& wanted, const MatchKey& key) {
  return wanted.context == key.context && (wanted.source == MPI_ANY_SOURCE || wanted.source == key.source) &&
         (wanted.tag == MPI_ANY_TAG || wanted.tag == key.tag);
}

/// The rule of the standard, by looking at everything in order.
class SlowMatching {
 public:
  void post(PostedReceive& receive) { receives_.push_back(&receive); }
  PostedReceive* take_receive(const MatchKey& key) {
    for (auto place = receives_.begin(); place != receives_.end(); ++place) {
      PostedReceive* found = *place;
      if (!suits(found->wanted, key)) continue;
      receives_.erase(place);
      return found;
    }
    return nullptr;
  }
  void withdraw(PostedReceive& receive) { receives_.remove(&receive); }
  void keep(EarlyMessage& message) { messages_.push_back(&message); }
  EarlyMessage* find_message(const MatchKey& wanted) {
    for (EarlyMessage* message : messages_) {
      if (suits(wanted, message->key)) return message;
    }
    return nullptr;
  }
  void remove(EarlyMessage& message) { messages_.remove(&message); }
  std::list<PostedReceive*>& receives() { return receives_; }
  std::list<EarlyMessage*>& messages() { return messages_; }

 private:
  std::list<PostedReceive*> receives_;
  std::list<EarlyMessage*> messages_;
};

class RandomMatching : public testing::TestWithParam<unsigned> {
 protected:
  std::mt19937 random_{GetParam()};
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  MatchKey key() { return {static_cast<std::uint32_t>(below(2)), below(4), below(5)}; }
  MatchKey wanted() {
    MatchKey result = key();
    if (below(4) == 0) result.source = MPI_ANY_SOURCE;
    if (below(4) == 0) result.tag = MPI_ANY_TAG;
    return result;
  }

  Matching matching_;
  SlowMatching model_;
  std::deque<PostedReceive> receives_;
  std::deque<EarlyMessage> messages_;
};

TEST_P(RandomMatching, does_what_a_search_in_order_does) {
  for (int step = 0; step < 20'000; ++step) {
    const int what = below(20);
    if (what < 9) {  // a receive
      const MatchKey pattern = wanted();
      EarlyMessage* found = matching_.find_message(pattern);
      ASSERT_EQ(found, model_.find_message(pattern));
      if (found != nullptr) {
        matching_.remove(*found);
        model_.remove(*found);
        continue;
      }
      PostedReceive& receive = receives_.emplace_back();
      receive.wanted = pattern;
      ASSERT_TRUE(matching_.post(receive));
      model_.post(receive);
    } else if (what < 18) {  // a message
      const MatchKey arrived = key();
      PostedReceive* taken = matching_.take_receive(arrived);
      ASSERT_EQ(taken, model_.take_receive(arrived));
      if (taken != nullptr) continue;
      EarlyMessage& message = messages_.emplace_back();
      message.key = arrived;
      ASSERT_TRUE(matching_.keep(message));
      model_.keep(message);
    } else if (!model_.receives().empty()) {  // a cancel
      auto place = std::next(model_.receives().begin(), below(static_cast<int>(model_.receives().size())));
      PostedReceive& receive = **place;
      matching_.withdraw(receive);
      model_.withdraw(receive);
    }
    ASSERT_EQ(matching_.posted(), model_.receives().size());
    ASSERT_EQ(matching_.kept(), model_.messages().size());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomMatching, testing::Values(1, 2, 3, 4));

/// The cost of a step with `waiting` entries that do not suit, in nanoseconds.
double cost_with_posted(int waiting) {
  Matching matching;
  std::deque<PostedReceive> others;
  for (int i = 0; i < waiting; ++i) {
    PostedReceive& receive = others.emplace_back();
    receive.wanted = {7, i % 16, 1000 + i};
    EXPECT_TRUE(matching.post(receive));
  }
  PostedReceive receive;
  receive.wanted = {7, 3, 5};
  const auto begun = std::chrono::steady_clock::now();
  constexpr int kRounds = 20'000;
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_TRUE(matching.post(receive));
    EXPECT_EQ(matching.take_receive({7, 3, 5}), &receive);
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begun;
  for (PostedReceive& other : others) matching.withdraw(other);
  return spent.count() / kRounds;
}

double cost_with_kept(int waiting) {
  Matching matching;
  std::deque<EarlyMessage> others;
  for (int i = 0; i < waiting; ++i) {
    EarlyMessage& message = others.emplace_back();
    message.key = {7, i % 16, 1000 + i};
    EXPECT_TRUE(matching.keep(message));
  }
  EarlyMessage message;
  message.key = {7, 3, 5};
  const auto begun = std::chrono::steady_clock::now();
  constexpr int kRounds = 20'000;
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_TRUE(matching.keep(message));
    EXPECT_EQ(matching.find_message({7, MPI_ANY_SOURCE, 5}), &message);
    matching.remove(message);
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begun;
  for (EarlyMessage& other : others) matching.remove(other);
  return spent.count() / kRounds;
}

/// A search would take a thousand times as long; the bound leaves room for caches and for a machine that is busy.
TEST(Matching, does_not_slow_down_with_ten_thousand_receives_that_wait) {
  const double few = cost_with_posted(10);
  EXPECT_LT(cost_with_posted(10'000), 20 * few + 500) << "with ten: " << few << " ns";
}

TEST(Matching, does_not_slow_down_with_ten_thousand_messages_that_wait) {
  const double few = cost_with_kept(10);
  EXPECT_LT(cost_with_kept(10'000), 20 * few + 500) << "with ten: " << few << " ns";
}

TEST(Matching, adds_up_the_bytes_of_messages_of_all_keys) {
  constexpr int kMessages = 100;
  Matching matching;
  EXPECT_EQ(matching.kept_bytes(), 0u);
  std::vector<am::Message> data(kMessages);
  std::deque<EarlyMessage> early(kMessages);
  for (int i = 0; i < kMessages; ++i) {
    const auto at = static_cast<std::size_t>(i);
    data[at].bytes = at;
    early[at].key = {0, i % 3, i % 40};
    early[at].message = &data[at];
    ASSERT_TRUE(matching.keep(early[at]));
  }
  EXPECT_EQ(matching.kept_bytes(), 4950u);
  for (EarlyMessage& message : early) {
    const std::size_t before = matching.kept_bytes();
    matching.remove(message);
    EXPECT_EQ(matching.kept_bytes(), before - message.message->bytes);
  }
}

}  // namespace
}  // namespace brant::mpi
