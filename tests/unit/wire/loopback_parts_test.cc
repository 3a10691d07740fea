// The parts of a LoopbackWire, each alone.
#include <poll.h>
#include <unistd.h>

#include <cstdint>

#include <gtest/gtest.h>

#include "port/wire/loopback/alarm.h"
#include "port/wire/loopback/arrivals.h"
#include "port/wire/loopback/operations.h"
#include "port/wire/loopback/posted_receives.h"

namespace brant::port::loopback::test {
namespace {

bool rings(const Alarm& alarm) {
  pollfd entry{alarm.fd(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(LoopbackAlarm, rings_only_while_it_is_armed_and_once) {
  Alarm alarm;
  ASSERT_GE(alarm.fd(), 0);
  alarm.ring();
  EXPECT_FALSE(rings(alarm));
  ASSERT_TRUE(alarm.arm());
  EXPECT_FALSE(rings(alarm));
  alarm.ring();
  EXPECT_TRUE(rings(alarm));
  std::uint64_t count = 0;
  ASSERT_EQ(::read(alarm.fd(), &count, sizeof(count)), static_cast<ssize_t>(sizeof(count)));
  alarm.ring();
  EXPECT_FALSE(rings(alarm)) << "it rang already";
  ASSERT_TRUE(alarm.arm());
  alarm.ring();
  ASSERT_TRUE(alarm.arm());
  EXPECT_FALSE(rings(alarm)) << "arming takes back what rang before";
}

struct Told : WireOp {
  int times = 0;
};

class LoopbackOperations : public testing::Test {
 protected:
  LoopbackOperations() { capabilities_.kinds = 1u << static_cast<unsigned>(MemoryKind::host); }

  WireCapabilities capabilities_;
  Alarm alarm_;
  Operations operations_{capabilities_, 2, alarm_};
  Told op_;
};

TEST_F(LoopbackOperations, are_refused_with_memory_that_is_none_or_of_a_wrong_kind) {
  int value = 0;
  EXPECT_EQ(operations_.check(&value, sizeof(value), MemoryKind::host, op_), Status::ok);
  EXPECT_EQ(operations_.check(nullptr, 0, MemoryKind::cuda, op_), Status::ok);
  EXPECT_EQ(operations_.check(nullptr, 1, MemoryKind::host, op_), Status::invalid_argument);
  EXPECT_EQ(operations_.check(&value, SIZE_MAX, MemoryKind::host, op_), Status::invalid_argument);
  EXPECT_EQ(operations_.check(&value, sizeof(value), MemoryKind::cuda, op_), Status::wrong_kind);
}

TEST_F(LoopbackOperations, are_bounded_in_flight) {
  EXPECT_TRUE(operations_.take_slot());
  EXPECT_TRUE(operations_.take_slot());
  EXPECT_FALSE(operations_.take_slot());
  operations_.give_slot();
  EXPECT_TRUE(operations_.take_slot());
}

TEST_F(LoopbackOperations, that_are_done_may_be_posted_again_once_they_were_delivered) {
  op_.on_complete = [](WireOp& op) noexcept { ++static_cast<Told&>(op).times; };
  ASSERT_TRUE(alarm_.arm());
  operations_.complete(op_, Status::truncated);
  EXPECT_TRUE(rings(alarm_));
  EXPECT_EQ(op_.times, 0);
  EXPECT_EQ(operations_.check(nullptr, 0, MemoryKind::host, op_), Status::invalid_argument);
  EXPECT_TRUE(operations_.deliver_one());
  EXPECT_EQ(op_.times, 1);
  EXPECT_EQ(op_.status, Status::truncated);
  EXPECT_FALSE(operations_.deliver_one());
  EXPECT_EQ(operations_.check(nullptr, 0, MemoryKind::host, op_), Status::ok);
}

TEST_F(LoopbackOperations, end_and_tell_nobody) {
  operations_.complete(op_, Status::ok);
  operations_.end();
  EXPECT_FALSE(operations_.any_done());
  WireOp other;
  EXPECT_EQ(operations_.check(nullptr, 0, MemoryKind::host, other), Status::shutting_down);
}

TEST(LoopbackReceives, match_in_the_order_in_which_they_were_posted_and_by_the_mask) {
  PostedReceives receives(8);
  WireOp first_op;
  WireOp second_op;
  WireOp third_op;
  receives.add(0x10, 0xff, {}, first_op);
  receives.add(0x20, 0xf0, {}, second_op);
  Receive* third = receives.add(0x2f, 0xff, {}, third_op);
  EXPECT_EQ(receives.take_match(0x11), nullptr);
  Receive* matched = receives.take_match(0x2f);
  ASSERT_NE(matched, nullptr);
  EXPECT_EQ(matched->op, &second_op);
  receives.give(*matched);
  receives.withdraw(*third);
  EXPECT_EQ(receives.take_match(0x2f), nullptr);
  receives.withdraw_all();
  EXPECT_EQ(receives.take_match(0x10), nullptr);
}

/// Messages of one sender: their addresses are all that the receiver looks at.
class LoopbackArrivals : public testing::Test {
 protected:
  Message& send(std::uint64_t tag, std::uint64_t due, bool eager = true) {
    Message& message = *fabric_.take_message();
    message.type = MessageKind::tagged;
    message.tag = tag;
    message.due = due;
    message.eager = eager;
    if (eager) arrivals_.note_eager();
    arrivals_.put(message, Place::arriving);
    return message;
  }
  static LoopbackOptions shuffled() {
    LoopbackOptions options;
    options.delay_max = 8;
    options.shuffle_tags = true;
    options.messages_max = 2;
    return options;
  }

  Fabric fabric_{shuffled()};
  Arrivals arrivals_{fabric_};
};

TEST_F(LoopbackArrivals, come_when_they_are_due_and_never_before_one_of_their_tag) {
  Message& first = send(1, 5);
  Message& second = send(1, 0);
  Message& other = send(2, 3);
  EXPECT_EQ(arrivals_.draw(2), nullptr) << "the second would overtake the first";
  EXPECT_EQ(arrivals_.draw(4), &other);
  EXPECT_EQ(arrivals_.draw(5), &first);
  EXPECT_EQ(arrivals_.draw(5), &second);
  EXPECT_TRUE(arrivals_.none(Place::arriving));
  for (Message* message : {&first, &second, &other}) arrivals_.release(*message);
}

TEST_F(LoopbackArrivals, are_crowded_until_enough_were_released) {
  Message& first = send(1, 0);
  EXPECT_FALSE(arrivals_.crowded());
  Message& second = send(1, 0);
  EXPECT_TRUE(arrivals_.crowded());
  arrivals_.release(first);
  EXPECT_FALSE(arrivals_.crowded());
  arrivals_.release(second);
}

TEST_F(LoopbackArrivals, wait_for_room_in_the_inbox) {
  for (int i = 0; i < 2; ++i) {
    Message& message = send(1, 0);
    arrivals_.take_out(message);
    arrivals_.put(message, Place::inbox);
  }
  send(2, 0);
  EXPECT_EQ(arrivals_.draw(1), nullptr);
  arrivals_.release(*arrivals_.first(Place::inbox));
  EXPECT_NE(arrivals_.draw(1), nullptr);
}

TEST_F(LoopbackArrivals, keep_the_record_of_a_message_that_is_released_in_its_handler) {
  struct Seen {
    Arrivals& arrivals;
    Message& message;
    bool still_there = false;
  };
  Message& message = send(1, 0, false);
  arrivals_.take_out(message);
  arrivals_.put(message, Place::waiting);
  message.source_gone = true;
  Seen seen{arrivals_, message};
  AmMessage view;
  const AmHandler release = [](void* context, AmMessage&) noexcept {
    auto& one = *static_cast<Seen*>(context);
    one.arrivals.release(one.message);
    one.still_there = one.message.source_gone;  // a record that is given back forgets that
  };
  arrivals_.hand(message, release, &seen, view);
  EXPECT_TRUE(seen.still_there);
  EXPECT_TRUE(arrivals_.none(Place::waiting));
}

TEST_F(LoopbackArrivals, whose_sender_gave_up_stay_only_where_the_user_holds_them) {
  Message& waiting = send(1, 0, false);
  arrivals_.take_out(waiting);
  arrivals_.put(waiting, Place::waiting);
  Message& arriving = send(1, 0, false);
  arrivals_.sender_gone(arriving);
  arrivals_.sender_gone(waiting);
  EXPECT_TRUE(arrivals_.none(Place::arriving));
  EXPECT_EQ(arrivals_.first(Place::waiting), &waiting);
  EXPECT_TRUE(waiting.source_gone);
  arrivals_.release(waiting);
}

}  // namespace
}  // namespace brant::port::loopback::test
