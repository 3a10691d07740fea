// The UCX wire between two processes.
#include <algorithm>
#include <deque>

#include <gtest/gtest.h>

#include "conformance/wire/subject.h"
#include "multi/wire/peer_process.h"
#include "port/wire/ucx/open.h"

namespace brant::port::test {
namespace {

class WireBetweenProcesses : public testing::Test {
 protected:
  void SetUp() override {
    try {
      pair.left = open_ucx_wire({});
    } catch (const Error& error) {
      if (error.status() != Status::not_found) throw;
      GTEST_SKIP() << error.what();
    }
    peer.emplace(*pair.left);
  }
  void TearDown() override {
    if (!peer) return;
    EXPECT_EQ(peer->quit(), 0) << "the peer ended badly";
    peer.reset();
  }
  /// Sends to the peer, which sends it back.
  void expect_echo(std::uint64_t tag, std::size_t bytes, bool recv_first) {
    const auto out = pattern(bytes, tag);
    std::vector<std::byte> in(bytes);
    Tracked sent, received;
    if (recv_first) received.posted = pair.left->tag_recv(tag | kBackTag, kWholeTag, host(in), received);
    sent.posted = pair.left->tag_send(peer->endpoint(), tag, host(out), sent);
    ASSERT_TRUE(pump(pair, [&] { return sent.done(); })) << bytes;
    if (!recv_first) received.posted = pair.left->tag_recv(tag | kBackTag, kWholeTag, host(in), received);
    ASSERT_TRUE(pump(pair, [&] { return received.done(); })) << bytes;
    EXPECT_EQ(received.outcome(), Status::ok);
    EXPECT_EQ(received.bytes, bytes);
    EXPECT_EQ(in, out) << bytes;
  }

  WirePair pair;
  std::optional<PeerProcess> peer;
};

TEST_F(WireBetweenProcesses, every_size_comes_back_unchanged) {
  std::uint64_t tag = 100;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{93}, std::size_t{8192}, std::size_t{8249},
        std::size_t{240000}, std::size_t{1} << 20, std::size_t{16} << 20}) {
    for (const bool recv_first : {true, false}) {
      ASSERT_TRUE(peer->tell({Verb::echo, 0, ++tag, bytes, 1}));
      expect_echo(tag, bytes, recv_first);
      EXPECT_EQ(peer->finished(), 0u);
    }
  }
}

TEST_F(WireBetweenProcesses, order_of_equal_tags_is_kept) {
  constexpr std::size_t kCount = 500;
  ASSERT_TRUE(peer->tell({Verb::echo, 0, 5, 64, kCount}));
  std::deque<Tracked> sent(kCount), received(kCount);
  std::vector<std::uint64_t> out(kCount), in(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    out[i] = i;
    received[i].posted = pair.left->tag_recv(5 | kBackTag, kWholeTag, Buffer{&in[i], 8, MemoryKind::host}, received[i]);
    sent[i].posted = pair.left->tag_send(peer->endpoint(), 5, ConstBuffer{&out[i], 8, MemoryKind::host}, sent[i]);
  }
  ASSERT_TRUE(pump(pair, [&] {
    return std::all_of(received.begin(), received.end(), [](const Tracked& op) { return op.done(); });
  }));
  EXPECT_EQ(in, out);
}

TEST_F(WireBetweenProcesses, active_messages_come_back_small_and_large) {
  struct Caught {
    std::vector<std::byte> header, payload;
    Wire* wire = nullptr;
    Tracked landing;
    bool arrived = false;
  } caught;
  caught.wire = pair.left.get();
  pair.left->set_am_handler(
      kEchoId,
      [](void* context, AmMessage& message) noexcept {
        auto& me = *static_cast<Caught*>(context);
        me.header.assign(message.header.begin(), message.header.end());
        me.payload.resize(message.bytes);
        me.landing.posted = Status::ok;
        if (message.data != nullptr) {
          std::copy(message.data, message.data + message.bytes, me.payload.begin());
        } else {
          me.landing.posted = me.wire->am_receive(message, host(me.payload), me.landing);
        }
        me.arrived = true;
      },
      &caught);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{64}, std::size_t{8192}, std::size_t{8193}, std::size_t{2000000}}) {
    const auto header = pattern(200, bytes), payload = pattern(bytes, 3);
    caught.arrived = false;
    caught.landing.completions = 0;
    Tracked sent;
    sent.posted = pair.left->am_send(peer->endpoint(), kEchoId, header, host(payload), sent);
    ASSERT_TRUE(pump(pair, [&] { return caught.arrived && caught.landing.done() && sent.done(); })) << bytes;
    EXPECT_EQ(caught.header, header) << bytes;
    EXPECT_EQ(caught.payload, payload) << bytes;
  }
}

TEST_F(WireBetweenProcesses, memory_of_the_peer_is_written_read_and_counted) {
  for (const bool ordinary : {false, true}) {
    const auto segment = peer->segment(1u << 20, ordinary);
    ASSERT_TRUE(segment);
    RemoteMemory& memory = *pair.left->remote_memory();
    const Result<WireKey*> key = memory.import_key(peer->endpoint(), segment->key);
    ASSERT_TRUE(key);
    EXPECT_EQ(memory.map_remote(*key, segment->address).ok(), !ordinary)
        << "allocated segments can be mapped, ordinary memory cannot";
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{4096}, std::size_t{1} << 20}) {
      const auto out = pattern(bytes, 9);
      std::vector<std::byte> in(bytes);
      Tracked put, flush, get;
      put.posted = memory.put(peer->endpoint(), *key, segment->address, host(out), put);
      flush.posted = memory.flush(peer->endpoint(), flush);
      ASSERT_TRUE(pump(pair, [&] { return put.done() && flush.done(); }));
      get.posted = memory.get(peer->endpoint(), *key, segment->address, host(in), get);
      ASSERT_TRUE(pump(pair, [&] { return get.done(); }));
      EXPECT_EQ(get.outcome(), Status::ok);
      EXPECT_EQ(in, out) << bytes << (ordinary ? " ordinary" : " shared");
    }
    std::uint64_t zero = 0, before = 99;
    Tracked clear, flush;
    clear.posted = memory.put(peer->endpoint(), *key, segment->address, ConstBuffer{&zero, 8, MemoryKind::host}, clear);
    flush.posted = memory.flush(peer->endpoint(), flush);
    ASSERT_TRUE(pump(pair, [&] { return clear.done() && flush.done(); }));
    for (std::uint64_t i = 0; i < 20; ++i) {
      Tracked add;
      add.posted = memory.atomic(peer->endpoint(), *key, segment->address, Atomic::of<std::uint64_t>(AtomicOp::add, 2),
                                 &before, add);
      ASSERT_TRUE(pump(pair, [&] { return add.done(); }));
      EXPECT_EQ(add.outcome(), Status::ok);
      EXPECT_EQ(before, 2 * i);
    }
  }
}

TEST_F(WireBetweenProcesses, a_flush_waits_for_atomics_on_memory_that_is_not_mapped) {
  const auto segment = peer->segment(64, true);
  ASSERT_TRUE(segment);
  RemoteMemory& memory = *pair.left->remote_memory();
  const Result<WireKey*> key = memory.import_key(peer->endpoint(), segment->key);
  ASSERT_TRUE(key);
  std::deque<Tracked> adds(100);
  std::vector<std::uint64_t> before(adds.size());
  for (std::size_t i = 0; i < adds.size(); ++i) {
    adds[i].posted = memory.atomic(peer->endpoint(), *key, segment->address,
                                   Atomic::of<std::uint64_t>(AtomicOp::add, 1), &before[i], adds[i]);
    ASSERT_EQ(adds[i].posted, Status::in_progress);
  }
  Tracked flush;
  flush.posted = memory.flush(peer->endpoint(), flush);
  ASSERT_TRUE(pump(pair, [&] { return flush.done(); }));
  EXPECT_EQ(flush.outcome(), Status::ok);
  EXPECT_TRUE(std::all_of(adds.begin(), adds.end(), [](const Tracked& op) { return op.done(); }))
      << "the flush overtook an atomic";
}

TEST_F(WireBetweenProcesses, a_sleeping_peer_is_woken_by_a_message) {
  ASSERT_TRUE(peer->tell({Verb::echo, 0, 1, 4096, 4}));
  ASSERT_TRUE(peer->tell({Verb::sleep, 0, 0, 0, 0}));
  for (const std::size_t bytes : {8u, 4096u, 8u, 100u}) {
    pump_for(pair, std::chrono::milliseconds(20));
    expect_echo(1, bytes, true);
  }
}

}  // namespace
}  // namespace brant::port::test
