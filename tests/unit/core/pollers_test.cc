#include "core/pollers.h"

#include <functional>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

namespace brant {
namespace {

class CallingPoller final : public Poller {
 public:
  explicit CallingPoller(std::function<void()> call) : call_(std::move(call)) {}
  unsigned poll() noexcept override {
    call_();
    return 1;
  }
  [[nodiscard]] bool lets_sleep() const noexcept override { return asleep; }

  bool asleep = false;

 private:
  std::function<void()> call_;
};

TEST(Pollers, one_that_takes_another_out_ends_neither_the_round_nor_leaves_it_behind) {
  Pollers pollers;
  int last_polled = 0;
  auto second = std::make_unique<CallingPoller>([] { FAIL() << "it was taken out before its turn"; });
  CallingPoller first([&] {
    if (second == nullptr) return;
    pollers.detach(*second);
    second.reset();
  });
  CallingPoller third([&] { ++last_polled; });
  for (CallingPoller* poller : {&first, second.get(), &third}) pollers.attach(*poller);
  EXPECT_EQ(pollers.poll(), 2u);
  EXPECT_EQ(last_polled, 1);
  EXPECT_EQ(pollers.poll(), 2u);
  EXPECT_EQ(last_polled, 2);
}

TEST(Pollers, are_attached_once_and_detached_as_often_as_anybody_likes) {
  Pollers pollers;
  int polled = 0;
  CallingPoller poller([&] { ++polled; });
  pollers.attach(poller);
  pollers.attach(poller);
  EXPECT_EQ(pollers.poll(), 1u);
  pollers.detach(poller);
  pollers.detach(poller);
  EXPECT_EQ(pollers.poll(), 0u);
  EXPECT_EQ(polled, 1);
}

TEST(Pollers, let_the_process_sleep_only_if_all_of_them_do) {
  Pollers pollers;
  EXPECT_FALSE(pollers.busy());
  CallingPoller sleeper([] {});
  CallingPoller other([] {});
  sleeper.asleep = true;
  pollers.attach(sleeper);
  EXPECT_FALSE(pollers.busy());
  pollers.attach(other);
  EXPECT_TRUE(pollers.busy());
  other.asleep = true;
  EXPECT_FALSE(pollers.busy());
}

}  // namespace
}  // namespace brant
