#include <algorithm>
#include <deque>
#include <thread>

#include "brant/base/clock.h"
#include "conformance/wire/fixture.h"

namespace brant::port::test {
namespace {

using Tag = WireTest;

TEST_P(Tag, send_before_recv_arrives) {
  const auto out = pattern(100, 1);
  std::vector<std::byte> in(100);
  Tracked sent, received;
  send(sent, 5, host(out));
  pump_for(pair);
  recv(received, 5, host(in));
  ASSERT_TRUE(finish(sent, received));
  EXPECT_EQ(sent.outcome(), Status::ok);
  EXPECT_EQ(received.outcome(), Status::ok);
  EXPECT_EQ(received.bytes, 100u);
  EXPECT_EQ(received.tag, 5u);
  EXPECT_EQ(in, out);
}

TEST_P(Tag, recv_before_send_arrives) {
  const auto out = pattern(100, 2);
  std::vector<std::byte> in(100);
  Tracked sent, received;
  recv(received, 6, host(in));
  EXPECT_EQ(received.posted, Status::in_progress);
  pump_for(pair);
  EXPECT_EQ(received.completions, 0);
  send(sent, 6, host(out));
  ASSERT_TRUE(finish(sent, received));
  EXPECT_EQ(received.outcome(), Status::ok);
  EXPECT_EQ(received.bytes, 100u);
  EXPECT_EQ(received.tag, 6u);
  EXPECT_EQ(in, out);
}

TEST_P(Tag, every_size_arrives_unchanged_in_both_orders) {
  for (const std::size_t bytes :
       {1u, 7u, 8u, 92u, 93u, 1024u, 8191u, 8192u, 8193u, 65536u, 262144u, 1048576u, 16777216u}) {
    for (const bool recv_first : {true, false}) {
      const auto out = pattern(bytes, bytes);
      std::vector<std::byte> in(bytes + 1, std::byte{0xee});
      Tracked sent, received;
      const Buffer landing{in.data(), bytes, MemoryKind::host};
      if (recv_first) recv(received, bytes, landing);
      send(sent, bytes, host(out));
      if (!recv_first) recv(received, bytes, landing);
      ASSERT_TRUE(finish(sent, received)) << bytes;
      EXPECT_EQ(sent.outcome(), Status::ok) << bytes;
      EXPECT_EQ(received.outcome(), Status::ok) << bytes;
      EXPECT_EQ(received.bytes, bytes);
      EXPECT_EQ(sent.bytes, bytes);
      EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin())) << bytes;
      EXPECT_EQ(in.back(), std::byte{0xee}) << "wrote behind the landing buffer, " << bytes;
    }
  }
}

TEST_P(Tag, zero_bytes_with_null_pointers_is_a_message) {
  Tracked sent, received;
  recv(received, 9, Buffer{});
  send(sent, 9, ConstBuffer{});
  ASSERT_TRUE(finish(sent, received));
  EXPECT_EQ(received.outcome(), Status::ok);
  EXPECT_EQ(received.bytes, 0u);
  EXPECT_EQ(received.tag, 9u);
}

TEST_P(Tag, empty_message_into_a_larger_buffer_leaves_it_alone) {
  std::vector<std::byte> in(16, std::byte{0x5a});
  Tracked sent, received;
  send(sent, 9, ConstBuffer{});
  recv(received, 9, host(in));
  ASSERT_TRUE(finish(sent, received));
  EXPECT_EQ(received.bytes, 0u);
  EXPECT_EQ(in, std::vector<std::byte>(16, std::byte{0x5a}));
}

TEST_P(Tag, mask_selects_which_messages_match) {
  constexpr std::uint64_t kHigh = 0xffff'0000'0000'0000u;
  const auto a = pattern(8, 1), b = pattern(8, 2);
  std::vector<std::byte> in(8);
  Tracked send_a, send_b, any_of_2, exact;
  send(send_a, 0x0001'0000'0000'0007u, host(a));
  send(send_b, 0x0002'0000'0000'0009u, host(b));
  recv(any_of_2, 0x0002'0000'0000'0000u, host(in), kHigh);
  ASSERT_TRUE(finish(send_b, any_of_2));
  EXPECT_EQ(any_of_2.tag, 0x0002'0000'0000'0009u) << "op.tag says what came, not what was asked for";
  EXPECT_EQ(in, b);
  recv(exact, 0x0001'0000'0000'0007u, host(in));
  ASSERT_TRUE(finish(send_a, exact));
  EXPECT_EQ(in, a);
}

TEST_P(Tag, a_receive_of_another_tag_stays_pending) {
  const auto out = pattern(8, 1);
  std::vector<std::byte> wrong(8), right(8);
  Tracked sent, waits, received;
  recv(waits, 1, host(wrong));
  recv(received, 2, host(right));
  send(sent, 2, host(out));
  ASSERT_TRUE(finish(sent, received));
  pump_for(pair);
  EXPECT_EQ(waits.completions, 0);
  EXPECT_EQ(right, out);
  pair.right->cancel(waits);
  ASSERT_TRUE(pump(pair, [&] { return waits.completions > 0; }));
}

TEST_P(Tag, equal_tags_keep_their_order) {
  constexpr int kCount = 300;
  std::deque<Tracked> sent(kCount), received(kCount);
  std::vector<std::vector<std::byte>> out, in(kCount);
  // Mixed sizes: small ones must not overtake large ones of the same tag.
  for (int i = 0; i < kCount; ++i) {
    const std::size_t bytes = i % 7 == 3 ? 20000 : i % 5 == 2 ? 500000u / 20 : 24;
    out.push_back(pattern(bytes, static_cast<std::uint64_t>(i)));
    in[static_cast<std::size_t>(i)].resize(bytes);
  }
  for (std::size_t i = 0; i < kCount / 2; ++i) recv(received[i], 77, host(in[i]));
  for (std::size_t i = 0; i < kCount; ++i) send(sent[i], 77, host(out[i]));
  pump_for(pair, std::chrono::milliseconds(5));
  for (std::size_t i = kCount / 2; i < kCount; ++i) recv(received[i], 77, host(in[i]));
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(finish(sent[i], received[i])) << i;
    ASSERT_EQ(received[i].outcome(), Status::ok) << i;
    ASSERT_EQ(in[i], out[i]) << i;
  }
}

TEST_P(Tag, different_tags_all_arrive) {
  constexpr std::size_t kCount = 200;
  std::deque<Tracked> sent(kCount), received(kCount);
  std::vector<std::vector<std::byte>> out, in(kCount, std::vector<std::byte>(64));
  for (std::size_t i = 0; i < kCount; ++i) out.push_back(pattern(64, i));
  for (std::size_t i = 0; i < kCount; ++i) send(sent[i], i, host(out[i]));
  for (std::size_t i = kCount; i-- > 0;) recv(received[i], i, host(in[i]));
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(finish(sent[i], received[i])) << i;
    ASSERT_EQ(in[i], out[i]) << i;
  }
}

TEST_P(Tag, a_longer_message_completes_truncated) {
  for (const std::size_t bytes : {64u, 4096u, 1048576u}) {
    for (const bool recv_first : {true, false}) {
      const auto out = pattern(bytes, 3);
      std::vector<std::byte> in(bytes, std::byte{0x11});
      const Buffer landing{in.data(), bytes / 2, MemoryKind::host};
      Tracked sent, received;
      if (recv_first) recv(received, 4, landing);
      send(sent, 4, host(out));
      if (!recv_first) {
        pump_for(pair);
        recv(received, 4, landing);
      }
      ASSERT_TRUE(finish(sent, received)) << bytes;
      EXPECT_EQ(received.outcome(), Status::truncated) << bytes << (recv_first ? " posted" : " unexpected");
      EXPECT_EQ(received.posted, Status::in_progress) << "a consumed message is a completion, not a refused post";
      EXPECT_TRUE(received.bytes == bytes || received.bytes == 0)
          << "the full length or unknown, not " << received.bytes;
      EXPECT_EQ(in[bytes / 2], std::byte{0x11}) << "wrote behind the landing buffer, " << bytes;
      const bool may_know =
          bytes == 1048576 && sent.posted == Status::in_progress && caps().reports_truncation_to_sender;
      EXPECT_EQ(sent.outcome(), may_know ? Status::truncated : Status::ok) << bytes;
    }
  }
}

TEST_P(Tag, after_a_truncation_the_next_message_is_whole) {
  const auto out = pattern(1000, 1);
  std::vector<std::byte> in(1000);
  Tracked first, second, short_recv, long_recv;
  send(first, 4, host(out));
  send(second, 4, host(out));
  recv(short_recv, 4, Buffer{in.data(), 10, MemoryKind::host});
  recv(long_recv, 4, host(in));
  ASSERT_TRUE(finish(first, short_recv));
  ASSERT_TRUE(finish(second, long_recv));
  EXPECT_EQ(short_recv.outcome(), Status::truncated);
  EXPECT_EQ(long_recv.outcome(), Status::ok);
  EXPECT_EQ(in, out);
}

TEST_P(Tag, cancel_completes_a_pending_receive_once) {
  std::vector<std::byte> in(8);
  Tracked received;
  recv(received, 1, host(in));
  pair.right->cancel(received);
  EXPECT_EQ(received.completions, 0) << "completions come from deliver";
  ASSERT_TRUE(pump(pair, [&] { return received.completions > 0; }));
  EXPECT_EQ(received.outcome(), Status::canceled);
  pair.right->cancel(received);
  pump_for(pair);
  EXPECT_EQ(received.completions, 1);
}

TEST_P(Tag, a_cancelled_receive_takes_no_message) {
  const auto out = pattern(8, 1);
  std::vector<std::byte> withdrawn(8, std::byte{0x22}), in(8);
  Tracked first, second, sent;
  recv(first, 1, host(withdrawn));
  recv(second, 1, host(in));
  pair.right->cancel(first);
  send(sent, 1, host(out));
  ASSERT_TRUE(finish(sent, second));
  ASSERT_TRUE(pump(pair, [&] { return first.completions > 0; }));
  EXPECT_EQ(first.outcome(), Status::canceled);
  EXPECT_EQ(in, out);
  EXPECT_EQ(withdrawn, std::vector<std::byte>(8, std::byte{0x22}));
}

TEST_P(Tag, cancel_after_the_match_does_not_undo_it) {
  const auto out = pattern(8, 1);
  std::vector<std::byte> in(8);
  Tracked sent, received;
  send(sent, 1, host(out));
  recv(received, 1, host(in));
  ASSERT_TRUE(pump(pair, [&] { return sent.done() && received.done(); }));
  pair.right->cancel(received);
  pump_for(pair);
  EXPECT_EQ(received.outcome(), Status::ok);
  EXPECT_EQ(in, out);
}

TEST_P(Tag, what_was_taken_back_is_not_written_any_more) {
  for (const int head_start : {0, 1, 2, 3, 5, 8}) {  // before the match, and at several places of the message
    const auto out = pattern(20'000'000, 1);
    std::vector<std::byte> in(out.size());
    Tracked sent, received;
    recv(received, 1, host(in));
    send(sent, 1, host(out));
    for (int i = 0; i < head_start; ++i) {
      pair.left->progress();
      pair.right->progress();
    }
    {  // a sender that writes must move meanwhile, as another process does
      const bool helps = pair.left->capabilities().name == "ucx";
      std::jthread sender([&](const std::stop_token& stop) {
        while (helps && !stop.stop_requested()) pair.left->progress();
      });
      pair.right->take_back(received);
    }
    std::fill(in.begin(), in.end(), std::byte{0x33});  // as if somebody else had the memory now
    pump_for(pair);
    EXPECT_EQ(received.completions, 1) << head_start;
    EXPECT_EQ(std::count(in.begin(), in.end(), std::byte{0x33}), static_cast<std::ptrdiff_t>(in.size())) << head_start;
    if (received.outcome() == Status::ok) continue;
    Tracked again;  // it was canceled: the message is there for the next receive
    recv(again, 1, host(in));
    ASSERT_TRUE(finish(sent, again)) << head_start;
    EXPECT_EQ(in, out);
  }
}

TEST_P(Tag, many_that_cannot_be_taken_back_hold_the_process_no_longer_than_one) {
  constexpr std::size_t kMany = 6;
  const auto out = pattern(20'000'000, 1);
  std::vector<std::vector<std::byte>> in(kMany, std::vector<std::byte>(out.size()));
  std::vector<Tracked> sent(kMany), received(kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    recv(received[i], i, host(in[i]));
    send(sent[i], i, host(out));
  }
  for (int i = 0; i < 3; ++i) {  // they match; then the sender stands still, as one that was cut off
    pair.left->progress();
    pair.right->progress();
  }
  const TimePoint begin = Clock::now();
  for (Tracked& one : received) pair.right->take_back(one);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(4));
  EXPECT_TRUE(pump(pair, [&] {
    return std::all_of(received.begin(), received.end(), [](const Tracked& one) { return one.done(); });
  }));
  std::vector<Tracked> again(kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    const bool canceled = received[i].outcome() == Status::canceled;
    if (canceled) recv(again[i], i, host(in[i]));
    EXPECT_TRUE(finish(sent[i], canceled ? again[i] : received[i])) << i;
  }
}

TEST_P(Tag, what_has_come_and_is_dropped_unread_meets_no_receive) {
  constexpr std::uint64_t kOfOne = ~std::uint64_t{0xf};
  for (const std::size_t bytes : {8u, 5000u, 3000000u}) {
    const auto out = pattern(bytes, 1), other = pattern(bytes, 2);
    std::vector<std::byte> in(bytes);
    Tracked dropped, dropped_too, kept, again, received, received_kept;
    send(dropped, 0x31, host(out));
    send(dropped_too, 0x32, host(out));
    send(kept, 0x41, host(other));
    pump_for(pair);
    EXPECT_EQ(pair.right->drop_unread(0x30, kOfOne), 2u) << bytes;
    EXPECT_EQ(pair.right->drop_unread(0x30, kOfOne), 0u) << bytes;
    ASSERT_TRUE(pump(pair, [&] { return dropped.done() && dropped_too.done(); })) << "their senders wait for ever";
    recv(received, 0x31, host(in));
    pump_for(pair);
    EXPECT_EQ(received.completions, 0) << bytes;
    send(again, 0x31, host(other));
    ASSERT_TRUE(finish(again, received)) << bytes;
    EXPECT_EQ(in, other);
    recv(received_kept, 0x41, host(in));
    ASSERT_TRUE(finish(kept, received_kept)) << bytes;
    EXPECT_EQ(received_kept.outcome(), Status::ok);
  }
}

TEST_P(Tag, a_wire_can_send_to_itself) {
  for (const std::size_t bytes : {8u, 5000u, 3000000u}) {
    const auto out = pattern(bytes, 1);
    std::vector<std::byte> in(bytes);
    Tracked sent, received;
    received.posted = pair.left->tag_recv(3, kWholeTag, host(in), received);
    sent.posted = pair.left->tag_send(pair.to_self, 3, host(out), sent);
    ASSERT_TRUE(finish(sent, received)) << bytes;
    EXPECT_EQ(received.outcome(), Status::ok);
    EXPECT_EQ(in, out);
  }
}

TEST_P(Tag, many_operations_in_flight_all_complete) {
  constexpr std::size_t kCount = 5000;
  std::deque<Tracked> sent(kCount), received(kCount);
  std::vector<std::uint64_t> out(kCount), in(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    out[i] = i * i;
    recv(received[i], i, Buffer{&in[i], 8, MemoryKind::host});
    ASSERT_EQ(received[i].posted, Status::in_progress);
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    send(sent[i], i, ConstBuffer{&out[i], 8, MemoryKind::host});
    ASSERT_TRUE(sent[i].posted == Status::ok || sent[i].posted == Status::in_progress) << status_name(sent[i].posted);
  }
  ASSERT_TRUE(pump(pair, [&] {
    return std::all_of(received.begin(), received.end(), [](const Tracked& op) { return op.done(); });
  }));
  EXPECT_EQ(in, out);
  EXPECT_TRUE(std::all_of(received.begin(), received.end(), [](const Tracked& op) { return op.completions == 1; }));
}

TEST_P(Tag, large_messages_in_both_directions_at_once) {
  constexpr std::size_t kBytes = 4u << 20, kCount = 4;
  std::deque<Tracked> ops(4 * kCount);
  std::vector<std::vector<std::byte>> in(2 * kCount, std::vector<std::byte>(kBytes)), out;
  for (std::size_t i = 0; i < 2 * kCount; ++i) out.push_back(pattern(kBytes, i));
  for (std::size_t i = 0; i < kCount; ++i) {
    ops[4 * i].posted = pair.left->tag_send(pair.to_right, i, host(out[2 * i]), ops[4 * i]);
    ops[4 * i + 1].posted = pair.right->tag_send(pair.to_left, i, host(out[2 * i + 1]), ops[4 * i + 1]);
    ops[4 * i + 2].posted = pair.right->tag_recv(i, kWholeTag, host(in[2 * i]), ops[4 * i + 2]);
    ops[4 * i + 3].posted = pair.left->tag_recv(i, kWholeTag, host(in[2 * i + 1]), ops[4 * i + 3]);
  }
  ASSERT_TRUE(
      pump(pair, [&] { return std::all_of(ops.begin(), ops.end(), [](const Tracked& op) { return op.done(); }); }));
  for (std::size_t i = 0; i < 2 * kCount; ++i) EXPECT_EQ(in[i], out[i]) << i;
}

TEST_P(Tag, completions_can_post_again) {
  struct Chain : Tracked {
    WirePair* pair = nullptr;
    std::uint64_t value = 0;
    int left = 1000;
  } chain;
  std::uint64_t out = 42;
  chain.pair = &pair;
  chain.on_complete = [](WireOp& op) noexcept {
    auto& me = static_cast<Chain&>(op);
    if (me.status != Status::ok) return;
    // A receive whose message is there already may be done at once and is then not reported.
    do {
      if (--me.left == 0) return;
      me.posted = me.pair->right->tag_recv(1, kWholeTag, Buffer{&me.value, 8, MemoryKind::host}, me);
    } while (me.posted == Status::ok);
  };
  chain.posted = pair.right->tag_recv(1, kWholeTag, Buffer{&chain.value, 8, MemoryKind::host}, chain);
  std::deque<Tracked> sent(1000);
  for (Tracked& op : sent) send(op, 1, ConstBuffer{&out, 8, MemoryKind::host});
  ASSERT_TRUE(pump(pair, [&] { return chain.left == 0; }));
  EXPECT_EQ(chain.value, 42u);
}

TEST_P(Tag, deliver_keeps_to_its_limit) {
  constexpr std::size_t kCount = 10;
  std::deque<Tracked> sent(kCount), received(kCount);
  std::uint64_t out = 1;
  std::vector<std::uint64_t> in(kCount);
  for (std::size_t i = 0; i < kCount; ++i) recv(received[i], 1, Buffer{&in[i], 8, MemoryKind::host});
  for (Tracked& op : sent) send(op, 1, ConstBuffer{&out, 8, MemoryKind::host});
  const auto fired = [&] {
    return std::count_if(received.begin(), received.end(), [](const Tracked& op) { return op.completions > 0; });
  };
  bool reached = false;
  for (int i = 0; i < 100000 && fired() < 10; ++i) {
    pair.left->progress();
    pair.left->deliver(16);
    // Let several gather before they are delivered.
    for (int j = 0; j < 20; ++j) pair.right->progress();
    const auto before = fired();
    const unsigned delivered = pair.right->deliver(3);
    EXPECT_EQ(static_cast<unsigned>(fired() - before), delivered);
    ASSERT_LE(delivered, 3u);
    reached = reached || delivered == 3;
  }
  EXPECT_EQ(fired(), 10);
  EXPECT_TRUE(reached) << "the limit was never put to the test";
  EXPECT_EQ(pair.right->deliver(100), 0u);
}

TEST_P(Tag, bad_arguments_are_refused_and_start_nothing) {
  std::vector<std::byte> bytes(8);
  Tracked op;
  const auto refused = [&](Status status) {
    EXPECT_EQ(op.request, nullptr);
    return status;
  };
  EXPECT_EQ(refused(pair.left->tag_send(nullptr, 1, host(bytes), op)), Status::invalid_argument);
  EXPECT_EQ(refused(pair.left->tag_send(pair.to_right, 1, ConstBuffer{nullptr, 8, MemoryKind::host}, op)),
            Status::invalid_argument);
  EXPECT_EQ(refused(pair.left->tag_send(pair.to_left, 1, host(bytes), op)), Status::invalid_argument)
      << "the endpoint of another wire";
  EXPECT_EQ(refused(pair.left->tag_recv(1, 1, Buffer{nullptr, 8, MemoryKind::host}, op)), Status::invalid_argument);
  EXPECT_EQ(refused(pair.left->tag_send(pair.to_right, 1, ConstBuffer{bytes.data(), SIZE_MAX, MemoryKind::host}, op)),
            Status::invalid_argument);
  pump_for(pair);
  EXPECT_EQ(op.completions, 0);
}

TEST_P(Tag, memory_of_a_kind_the_wire_does_not_take_is_refused) {
  std::vector<std::byte> bytes(8);
  int checked = 0;
  for (const MemoryKind kind : {MemoryKind::detect, MemoryKind::cuda, MemoryKind::cuda_managed, MemoryKind::emulated}) {
    if (caps().takes(kind)) continue;
    ++checked;
    Tracked op;
    EXPECT_EQ(pair.left->tag_send(pair.to_right, 1, ConstBuffer{bytes.data(), 8, kind}, op), Status::wrong_kind);
    EXPECT_EQ(pair.left->tag_recv(1, 1, Buffer{bytes.data(), 8, kind}, op), Status::wrong_kind);
  }
  EXPECT_GT(checked, 0);
}

TEST_P(Tag, an_op_cannot_be_posted_twice) {
  std::vector<std::byte> in(8);
  Tracked received;
  recv(received, 1, host(in));
  EXPECT_EQ(pair.right->tag_recv(2, kWholeTag, host(in), received), Status::invalid_argument);
  pair.right->cancel(received);
  EXPECT_EQ(pair.right->tag_recv(2, kWholeTag, host(in), received), Status::invalid_argument)
      << "completed, but not delivered";
  ASSERT_TRUE(pump(pair, [&] { return received.completions > 0; }));
}

INSTANTIATE_TEST_SUITE_P(Wire, Tag, testing::ValuesIn(subjects()), name_of);

}  // namespace
}  // namespace brant::port::test
