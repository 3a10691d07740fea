// What the CPU makes of what the kernel wrote; the kernel is played by hand.
#include "ops/courier/order_book.h"

#include <memory>
#include <span>

#include <gtest/gtest.h>

#include "ops/courier/host_machine.h"

namespace brant::test {
namespace {

using courier::HostDesk;
using courier::HostMachine;
using courier::OrderRing;
using Book = courier::OrderBook<HostMachine>;

void* anywhere(void* pointer) noexcept { return pointer; }

class OrderBookTest : public testing::Test {
 protected:
  static CourierOrder order(std::uint32_t value) {
    static char memory[8];
    return {.to = memory, .from = memory, .bytes = 8, .value = value, .flag = nullptr};
  }
  void launch() {
    book_.launch(launch_);
    desk_->started = launch_.number;
    book_.look();
  }
  void leave(std::uint64_t next) { desk_->left = courier::leave_word(launch_.number, next); }
  void mark(std::uint64_t number) { desk_->marks[number % OrderRing::kSlots] = number; }
  std::uint32_t value_at(std::uint64_t number) {
    OrderRing::Entry seen[1];
    EXPECT_EQ(take_entries(machine_, desk_->orders[0], number, 1, seen), 1u);
    return static_cast<std::uint32_t>(courier::value_of(seen[0]));
  }

  std::uint64_t fault_ = 0;
  HostMachine machine_{&anywhere, &fault_};
  std::unique_ptr<HostDesk> desk_ = std::make_unique<HostDesk>();
  Book book_{machine_, *desk_, 2};
  courier::Launch launch_{};
};

TEST_F(OrderBookTest, done_counts_what_is_done_from_the_first_on) {
  launch();
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(book_.post(order(i)));
  mark(launch_.first + 1);
  EXPECT_EQ(book_.look(), 0u);
  mark(launch_.first);
  EXPECT_EQ(book_.look(), 2u);
  EXPECT_EQ(book_.done(), 2u);
}

TEST_F(OrderBookTest, a_lone_order_goes_to_all_dispatchers_and_those_of_a_window_to_one) {
  launch();
  for (std::uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(book_.post(order(i)));
  OrderRing::Entry seen[8];
  EXPECT_EQ(take_entries(machine_, desk_->orders[0], launch_.first, 8, seen), 5u);
  EXPECT_EQ(take_entries(machine_, desk_->orders[1], launch_.first, 8, seen), 1u);
  EXPECT_TRUE(is_lone(seen[0]));
}

TEST_F(OrderBookTest, no_dispatcher_finds_an_order_that_was_not_posted_however_many_were) {
  launch();
  OrderRing::Entry seen[1];
  const std::uint64_t all = 3 * courier::kLapsTold * OrderRing::kSlots;
  for (std::uint64_t number = launch_.first; number < launch_.first + all; ++number) {
    for (const OrderRing& ring : std::span(desk_->orders).first(2))
      ASSERT_EQ(take_entries(machine_, ring, number, 1, seen), 0u) << "order " << number - launch_.first;
    ASSERT_TRUE(book_.post(order(1)));
    if (number != launch_.first) mark(number - 1);  // another one is always under way
  }
}

TEST_F(OrderBookTest, the_ring_has_a_bound) {
  launch();
  for (std::uint32_t i = 0; i < OrderRing::kSlots; ++i) ASSERT_TRUE(book_.post(order(i)));
  EXPECT_FALSE(book_.post(order(0)));
  mark(launch_.first);
  EXPECT_TRUE(book_.post(order(0)));
}

TEST_F(OrderBookTest, orders_left_over_are_posted_anew_in_their_order) {
  launch();
  for (std::uint32_t i = 0; i < OrderRing::kSlots; ++i) ASSERT_TRUE(book_.post(order(i)));
  const std::uint64_t first = launch_.first;
  mark(first);
  leave(first + 1);
  EXPECT_EQ(book_.look(), 1u);
  EXPECT_EQ(book_.courier(), Book::Courier::away);
  EXPECT_EQ(book_.left_over(), OrderRing::kSlots - 1);
  EXPECT_FALSE(book_.post(order(7)));
  launch();
  EXPECT_EQ(launch_.first, first + OrderRing::kSlots);
  for (std::uint32_t i = 1; i < OrderRing::kSlots; ++i) ASSERT_EQ(value_at(launch_.first + i - 1), i);
  mark(launch_.first);
  EXPECT_EQ(book_.look(), 1u);
  EXPECT_EQ(book_.done(), 2u);
}

TEST_F(OrderBookTest, orders_left_over_can_be_taken_back_once_those_before_are_done) {
  launch();
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(book_.post(order(i)));
  leave(launch_.first + 2);
  book_.look();
  CourierOrder back;
  EXPECT_EQ(book_.take_back(back), 0u);
  mark(launch_.first);
  mark(launch_.first + 1);
  EXPECT_EQ(book_.done(), 0u) << "nobody has looked";
  ASSERT_EQ(book_.take_back(back), 3u) << "those before it have ended meanwhile";
  EXPECT_EQ(back.value, 2u);
  EXPECT_EQ(book_.done(), 3u);
  launch();
  EXPECT_EQ(book_.take_back(back), 0u);
  EXPECT_EQ(value_at(launch_.first), 3u);
  mark(launch_.first);
  book_.look();
  EXPECT_EQ(book_.done(), 4u);
}

TEST_F(OrderBookTest, a_launch_that_failed_has_not_happened) {
  book_.launch(launch_);
  const std::uint64_t number = launch_.number;
  book_.launch_failed();
  EXPECT_EQ(book_.courier(), Book::Courier::away);
  book_.launch(launch_);
  EXPECT_EQ(launch_.number, number);
}

TEST_F(OrderBookTest, launches_may_outgrow_their_sixteen_bits) {
  for (int i = 0; i < 70000; ++i) {
    launch();
    ASSERT_EQ(book_.courier(), Book::Courier::resident) << i;
    leave(launch_.first);
    book_.look();
    ASSERT_EQ(book_.courier(), Book::Courier::away) << i;
  }
}

}  // namespace
}  // namespace brant::test
