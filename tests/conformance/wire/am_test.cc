#include <algorithm>
#include <deque>

#include "conformance/wire/fixture.h"

namespace brant::port::test {
namespace {

/// Collects what arrives; receives waiting payloads at once, or keeps or discards them.
struct Catcher {
  enum class Waiting { receive, keep, discard };

  Wire* wire = nullptr;
  Waiting waiting = Waiting::receive;
  struct Message {
    std::vector<std::byte> header;
    std::vector<std::byte> payload;
    std::size_t bytes = 0;
    bool waited = false;
    AmMessage kept;
    Tracked landing;
  };
  std::deque<Message> messages;

  static void handle(void* context, AmMessage& message) noexcept {
    auto& me = *static_cast<Catcher*>(context);
    Message& caught = me.messages.emplace_back();
    caught.header.assign(message.header.begin(), message.header.end());
    caught.bytes = message.bytes;
    caught.landing.posted = Status::ok;
    if (message.data != nullptr) {
      caught.payload.assign(message.data, message.data + message.bytes);
      return;
    }
    caught.waited = true;
    caught.kept = message;
    if (me.waiting == Waiting::discard) me.wire->am_discard(message);
    if (me.waiting == Waiting::receive) me.land(caught);
  }
  void land(Message& caught) {
    caught.payload.resize(caught.bytes);
    caught.landing.posted = wire->am_receive(caught.kept, host(caught.payload), caught.landing);
  }
};

class Am : public WireTest {
 protected:
  void SetUp() override {
    WireTest::SetUp();
    if (IsSkipped()) return;
    if (!caps().active_messages) GTEST_SKIP() << "no active messages";
    catcher.wire = pair.right.get();
    pair.right->set_am_handler(7, &Catcher::handle, &catcher);
  }
  void send(Tracked& op, unsigned id, std::span<const std::byte> header, ConstBuffer payload) {
    op.posted = pair.left->am_send(pair.to_right, id, header, payload, op);
  }
  [[nodiscard]] bool caught(std::size_t count) {
    return pump(pair, [&] {
      return catcher.messages.size() >= count &&
             std::all_of(catcher.messages.begin(), catcher.messages.end(),
                         [](const Catcher::Message& m) { return m.landing.done(); });
    });
  }

  Catcher catcher;
};

TEST_P(Am, header_and_payload_of_every_size_arrive) {
  const std::size_t eager = caps().am_eager_bytes_max, header_max = caps().am_header_bytes_max;
  std::size_t expected = 0;
  for (const std::size_t header_bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{40}, std::size_t{1000}, header_max}) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{300}, std::size_t{600},
                                    eager, eager + 1, std::size_t{1000000}}) {
      const auto header = pattern(header_bytes, 1), payload = pattern(bytes, 2);
      Tracked sent;
      send(sent, 7, header, host(payload));
      ASSERT_TRUE(caught(++expected)) << header_bytes << " + " << bytes;
      ASSERT_TRUE(pump(pair, [&] { return sent.done(); }));
      EXPECT_EQ(sent.outcome(), Status::ok);
      const Catcher::Message& last = catcher.messages.back();
      EXPECT_EQ(last.header, header) << header_bytes << " + " << bytes;
      EXPECT_EQ(last.payload, payload) << header_bytes << " + " << bytes;
      EXPECT_EQ(last.waited, bytes > eager) << bytes;
      EXPECT_EQ(last.landing.outcome(), Status::ok);
      if (last.waited) {
        EXPECT_EQ(last.landing.bytes, bytes);
      }
    }
  }
}

TEST_P(Am, the_header_is_free_after_the_post) {
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{300000}}) {
    std::vector<std::byte> header = pattern(2000, 1);
    const auto payload = pattern(bytes, 2);
    Tracked sent;
    send(sent, 7, header, host(payload));
    std::fill(header.begin(), header.end(), std::byte{0});
    ASSERT_TRUE(caught(bytes == 16 ? 1 : 2));
    EXPECT_EQ(catcher.messages.back().header, pattern(2000, 1));
    ASSERT_TRUE(pump(pair, [&] { return sent.done(); }));
  }
}

TEST_P(Am, the_handler_runs_in_deliver_only) {
  const auto payload = pattern(8, 1);
  Tracked sent;
  send(sent, 7, {}, host(payload));
  for (int i = 0; i < 1000; ++i) {
    pair.left->progress();
    pair.right->progress();
  }
  EXPECT_TRUE(catcher.messages.empty());
  EXPECT_EQ(pair.right->deliver(1), 1u);
  EXPECT_EQ(catcher.messages.size(), 1u);
}

TEST_P(Am, a_waiting_payload_can_be_kept_for_later) {
  catcher.waiting = Catcher::Waiting::keep;
  const auto payload = pattern(200000, 5), other = pattern(64, 6);
  Tracked sent, second;
  send(sent, 7, {}, host(payload));
  ASSERT_TRUE(pump(pair, [&] { return !catcher.messages.empty(); }));
  send(second, 7, {}, host(other));
  ASSERT_TRUE(pump(pair, [&] { return catcher.messages.size() == 2; }));
  pump_for(pair);
  EXPECT_FALSE(sent.done()) << "the payload waits at the sender";
  catcher.land(catcher.messages.front());
  ASSERT_TRUE(caught(2));
  ASSERT_TRUE(pump(pair, [&] { return sent.done(); }));
  EXPECT_EQ(catcher.messages.front().payload, payload);
  EXPECT_EQ(catcher.messages.back().payload, other);
}

TEST_P(Am, a_discarded_payload_frees_the_sender) {
  catcher.waiting = Catcher::Waiting::discard;
  const auto payload = pattern(200000, 5);
  Tracked sent;
  send(sent, 7, {}, host(payload));
  ASSERT_TRUE(pump(pair, [&] { return sent.done(); }));
  EXPECT_EQ(sent.outcome(), Status::ok);
}

TEST_P(Am, a_waiting_payload_in_a_short_buffer_is_truncated) {
  catcher.waiting = Catcher::Waiting::keep;
  const auto payload = pattern(200000, 5);
  std::vector<std::byte> in(1001, std::byte{0x33});
  Tracked sent, landing;
  send(sent, 7, {}, host(payload));
  ASSERT_TRUE(pump(pair, [&] { return !catcher.messages.empty(); }));
  landing.posted =
      pair.right->am_receive(catcher.messages.front().kept, Buffer{in.data(), 1000, MemoryKind::host}, landing);
  ASSERT_TRUE(pump(pair, [&] { return landing.done() && sent.done(); }));
  EXPECT_EQ(landing.outcome(), Status::truncated);
  EXPECT_TRUE(landing.bytes == payload.size() || landing.bytes == 0) << landing.bytes;
  EXPECT_EQ(in.back(), std::byte{0x33});
  EXPECT_EQ(sent.outcome(), caps().reports_truncation_to_sender ? Status::truncated : Status::ok);
}

TEST_P(Am, am_receive_refuses_what_is_not_waiting) {
  const auto payload = pattern(200000, 5);
  Tracked sent, op;
  std::vector<std::byte> in(8);
  AmMessage nothing;
  EXPECT_EQ(pair.right->am_receive(nothing, host(in), op), Status::invalid_argument);
  catcher.waiting = Catcher::Waiting::keep;
  send(sent, 7, {}, host(payload));
  ASSERT_TRUE(pump(pair, [&] { return !catcher.messages.empty(); }));
  catcher.land(catcher.messages.front());
  EXPECT_EQ(pair.right->am_receive(catcher.messages.front().kept, host(in), op), Status::invalid_argument)
      << "received already";
  pair.right->am_discard(catcher.messages.front().kept);
  ASSERT_TRUE(caught(1));
  EXPECT_EQ(catcher.messages.front().payload, payload);
  ASSERT_TRUE(pump(pair, [&] { return sent.done(); }));
}

TEST_P(Am, ids_reach_their_own_handlers) {
  Catcher others[2];
  for (Catcher& other : others) other.wire = pair.right.get();
  pair.right->set_am_handler(0, &Catcher::handle, &others[0]);
  pair.right->set_am_handler(63, &Catcher::handle, &others[1]);
  const auto payload = pattern(8, 1);
  std::deque<Tracked> sent(3);
  send(sent[0], 0, {}, host(payload));
  send(sent[1], 63, {}, host(payload));
  send(sent[2], 7, {}, host(payload));
  ASSERT_TRUE(pump(pair, [&] {
    return others[0].messages.size() == 1 && others[1].messages.size() == 1 && catcher.messages.size() == 1;
  }));
}

TEST_P(Am, a_message_without_a_handler_is_dropped_and_frees_its_sender) {
  const auto small = pattern(8, 1), large = pattern(200000, 1);
  std::deque<Tracked> sent(2);
  send(sent[0], 9, {}, host(small));
  send(sent[1], 9, {}, host(large));
  ASSERT_TRUE(pump(pair, [&] { return sent[0].done() && sent[1].done(); }));
  EXPECT_TRUE(catcher.messages.empty());
}

TEST_P(Am, a_handler_set_after_arrival_still_gets_the_message) {
  const auto payload = pattern(8, 1);
  Tracked sent;
  send(sent, 12, {}, host(payload));
  for (int i = 0; i < 1000; ++i) {
    pair.left->progress();
    pair.right->progress();
  }
  pair.right->set_am_handler(12, &Catcher::handle, &catcher);
  ASSERT_TRUE(caught(1));
}

TEST_P(Am, messages_to_self_are_queued_not_called) {
  catcher.wire = pair.left.get();
  pair.left->set_am_handler(7, &Catcher::handle, &catcher);
  const auto payload = pattern(8, 1), large = pattern(300000, 2);
  std::deque<Tracked> sent(2);
  sent[0].posted = pair.left->am_send(pair.to_self, 7, {}, host(payload), sent[0]);
  sent[1].posted = pair.left->am_send(pair.to_self, 7, {}, host(large), sent[1]);
  EXPECT_TRUE(catcher.messages.empty()) << "no handler runs inside a post";
  ASSERT_TRUE(caught(2));
  ASSERT_TRUE(pump(pair, [&] { return sent[0].done() && sent[1].done(); }));
  std::vector<std::size_t> sizes = {catcher.messages[0].payload.size(), catcher.messages[1].payload.size()};
  std::sort(sizes.begin(), sizes.end());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{8, 300000}));
}

TEST_P(Am, thousands_in_flight_all_arrive_once) {
  constexpr std::size_t kCount = 5000;
  std::deque<Tracked> sent(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::uint64_t number = i;
    send(sent[i], 7, std::as_bytes(std::span(&number, 1)), ConstBuffer{});
    ASSERT_TRUE(sent[i].posted == Status::ok || sent[i].posted == Status::in_progress)
        << i << status_name(sent[i].posted);
  }
  ASSERT_TRUE(caught(kCount));
  pump_for(pair);
  ASSERT_EQ(catcher.messages.size(), kCount);
  std::vector<bool> seen(kCount);
  for (const Catcher::Message& message : catcher.messages) {
    std::uint64_t number = 0;
    ASSERT_EQ(message.header.size(), sizeof number);
    std::memcpy(&number, message.header.data(), sizeof number);
    ASSERT_LT(number, kCount);
    EXPECT_FALSE(seen[number]);
    seen[number] = true;
  }
}

TEST_P(Am, handlers_can_send_replies) {
  struct Echo {
    WirePair* pair;
    std::deque<Tracked> sent;
  } echo{&pair, {}};
  const auto reply = [](void* context, AmMessage& message) noexcept {
    auto& me = *static_cast<Echo*>(context);
    Tracked& op = me.sent.emplace_back();
    op.posted = me.pair->right->am_send(me.pair->to_left, 1, message.header,
                                        ConstBuffer{message.data, message.bytes, MemoryKind::host}, op);
  };
  Catcher back;
  back.wire = pair.left.get();
  pair.right->set_am_handler(1, reply, &echo);
  pair.left->set_am_handler(1, &Catcher::handle, &back);
  const auto header = pattern(20, 1), payload = pattern(100, 2);
  Tracked sent;
  send(sent, 1, header, host(payload));
  ASSERT_TRUE(pump(pair, [&] { return back.messages.size() == 1; }));
  EXPECT_EQ(back.messages[0].header, header);
  EXPECT_EQ(back.messages[0].payload, payload);
}

TEST_P(Am, bad_arguments_are_refused) {
  const auto header = pattern(caps().am_header_bytes_max + 1, 1);
  const auto bytes = pattern(8, 1);
  Tracked op;
  EXPECT_EQ(pair.left->am_send(pair.to_right, 7, header, host(bytes), op), Status::invalid_argument)
      << "header too long";
  EXPECT_EQ(pair.left->am_send(pair.to_right, 64, {}, host(bytes), op), Status::invalid_argument) << "id";
  EXPECT_EQ(pair.left->am_send(nullptr, 7, {}, host(bytes), op), Status::invalid_argument);
  EXPECT_EQ(pair.left->am_send(pair.to_right, 7, {}, ConstBuffer{nullptr, 8, MemoryKind::host}, op),
            Status::invalid_argument);
  EXPECT_EQ(pair.left->am_send(pair.to_right, 7, {}, ConstBuffer{bytes.data(), 8, MemoryKind::detect}, op),
            Status::wrong_kind);
  pair.left->set_am_handler(64, &Catcher::handle, nullptr);
  pump_for(pair);
  EXPECT_TRUE(catcher.messages.empty());
}

INSTANTIATE_TEST_SUITE_P(Wire, Am, testing::ValuesIn(subjects()), name_of);

}  // namespace
}  // namespace brant::port::test
