#include <poll.h>

#include <deque>

#include "conformance/wire/fixture.h"

namespace brant::port::test {
namespace {

using Endpoint = WireTest;

TEST_P(Endpoint, damaged_and_foreign_addresses_are_refused) {
  const std::vector<std::byte> address(pair.right->address().begin(), pair.right->address().end());
  EXPECT_EQ(pair.left->connect({}).status(), Status::invalid_argument);
  EXPECT_EQ(pair.left->connect(pattern(300, 1)).status(), Status::invalid_argument);
  EXPECT_EQ(pair.left->connect(std::vector<std::byte>(address.size())).status(), Status::invalid_argument);
  for (std::size_t i = 0; i < address.size(); ++i) {
    auto damaged = address;
    damaged[i] ^= std::byte{0x04};
    EXPECT_EQ(pair.left->connect(damaged).status(), Status::invalid_argument) << "byte " << i;
  }
  for (std::size_t bytes = 0; bytes < address.size(); bytes += 3) {
    EXPECT_EQ(pair.left->connect(std::span(address).first(bytes)).status(), Status::invalid_argument) << bytes;
  }
}

TEST_P(Endpoint, the_address_stays_the_same) {
  const std::vector<std::byte> before(pair.left->address().begin(), pair.left->address().end());
  pump_for(pair);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), pair.left->address().begin(), pair.left->address().end()));
}

TEST_P(Endpoint, disconnect_cancels_pending_sends) {
  const auto tagged = pattern(4000000, 1), message = pattern(500000, 2);
  Tracked send_op, am_op;
  send_op.posted = pair.left->tag_send(pair.to_right, 1, host(tagged), send_op);
  am_op.posted = pair.left->am_send(pair.to_right, 1, {}, host(message), am_op);
  ASSERT_EQ(send_op.posted, Status::in_progress);
  ASSERT_EQ(am_op.posted, Status::in_progress);
  pair.left->progress();
  pair.left->disconnect(pair.to_right);
  EXPECT_EQ(send_op.completions, 0) << "completions come from deliver";
  while (pair.left->deliver(16) > 0) {
  }
  EXPECT_EQ(send_op.outcome(), Status::canceled);
  EXPECT_EQ(am_op.outcome(), Status::canceled);
  pump_for(pair);
  EXPECT_EQ(send_op.completions, 1);
  EXPECT_EQ(am_op.completions, 1);
}

TEST_P(Endpoint, a_disconnected_endpoint_is_refused) {
  const auto bytes = pattern(8, 1);
  Tracked op;
  pair.left->disconnect(pair.to_right);
  pair.left->disconnect(pair.to_right);
  pair.left->disconnect(nullptr);
  EXPECT_EQ(pair.left->tag_send(pair.to_right, 1, host(bytes), op), Status::invalid_argument);
  EXPECT_EQ(pair.left->am_send(pair.to_right, 1, {}, host(bytes), op), Status::invalid_argument);
}

TEST_P(Endpoint, after_a_disconnect_the_others_go_on) {
  const auto out = pattern(100, 1);
  std::vector<std::byte> in(100);
  Tracked stuck, sent, received;
  const auto large = pattern(4000000, 1);
  stuck.posted = pair.left->tag_send(pair.to_right, 1, host(large), stuck);
  pair.left->disconnect(pair.to_right);
  received.posted = pair.left->tag_recv(3, kWholeTag, host(in), received);
  sent.posted = pair.left->tag_send(pair.to_self, 3, host(out), sent);
  ASSERT_TRUE(finish(sent, received));
  EXPECT_EQ(in, out);
}

TEST_P(Endpoint, a_second_connection_works_after_a_disconnect) {
  const auto out = pattern(100, 1);
  std::vector<std::byte> in(100);
  pair.left->disconnect(pair.to_right);
  pump_for(pair);
  const Result<WireEndpoint*> again = pair.left->connect(pair.right->address());
  ASSERT_TRUE(again);
  pair.to_right = *again;
  Tracked sent, received;
  recv(received, 1, host(in));
  send(sent, 1, host(out));
  ASSERT_TRUE(finish(sent, received));
  EXPECT_EQ(in, out);
}

TEST_P(Endpoint, closing_with_operations_pending_is_quiet) {
  const auto large = pattern(4000000, 1);
  std::vector<std::byte> in(8);
  Tracked stuck, waits;
  stuck.posted = pair.left->tag_send(pair.to_right, 1, host(large), stuck);
  waits.posted = pair.left->tag_recv(2, kWholeTag, host(in), waits);
  pair.left.reset();
  pump_for(pair);
  EXPECT_EQ(stuck.completions, 0) << "a closed wire reports nothing more";
  EXPECT_EQ(waits.completions, 0);
}

TEST_P(Endpoint, capabilities_are_sensible) {
  EXPECT_FALSE(caps().name.empty());
  EXPECT_FALSE(caps().version.empty());
  EXPECT_TRUE(caps().takes(MemoryKind::host));
  EXPECT_TRUE(caps().takes(MemoryKind::pinned));
  EXPECT_FALSE(caps().takes(MemoryKind::detect));
  EXPECT_EQ(caps().remote_memory, pair.left->remote_memory() != nullptr);
  EXPECT_EQ(caps().can_sleep, pair.left->event_fd() >= 0);
  if (caps().active_messages) {
    EXPECT_GE(caps().am_header_bytes_max, 256u);
    EXPECT_GE(caps().am_eager_bytes_max, 256u);
  }
}

TEST_P(Endpoint, a_message_wakes_the_armed_wire) {
  if (!caps().can_sleep) {
    EXPECT_FALSE(pair.right->arm());
    GTEST_SKIP() << "cannot sleep";
  }
  const auto out = pattern(100, 1);
  std::vector<std::byte> in(100);
  // A first exchange, so that the connection is made.
  Tracked sent, received;
  recv(received, 1, host(in));
  send(sent, 1, host(out));
  ASSERT_TRUE(finish(sent, received));
  for (int round = 0; round < 5; ++round) {
    Tracked next_sent, next_received;
    recv(next_received, 2, host(in));
    pollfd event{pair.right->event_fd(), POLLIN, 0};
    // A wake-up for nothing is allowed now and then, but an idle wire must be able to sleep.
    bool asleep = false;
    for (int attempt = 0; attempt < 100 && !asleep; ++attempt) {
      ASSERT_TRUE(pump(pair, [&] { return pair.right->arm(); })) << "an idle wire can be armed";
      asleep = ::poll(&event, 1, 5) == 0;
    }
    ASSERT_TRUE(asleep);
    send(next_sent, 2, host(out));
    for (int i = 0; i < 100; ++i) pair.left->progress();
    // What delays a message must not keep its receiver asleep for good: a shuffled wire refuses to be armed instead.
    ASSERT_EQ(::poll(&event, 1, 5000), 1);
    ASSERT_TRUE(finish(next_sent, next_received));
  }
}

TEST_P(Endpoint, a_wire_with_something_to_deliver_cannot_be_armed) {
  if (!caps().can_sleep) GTEST_SKIP() << "cannot sleep";
  std::vector<std::byte> in(8);
  Tracked received;
  recv(received, 1, host(in));
  pair.right->cancel(received);
  pair.right->progress();
  EXPECT_FALSE(pair.right->arm());
  ASSERT_TRUE(pump(pair, [&] { return received.completions == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Wire, Endpoint, testing::ValuesIn(subjects()), name_of);

}  // namespace
}  // namespace brant::port::test
