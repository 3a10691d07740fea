#include "port/wire/loopback/loopback.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>

#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "conformance/wire/subject.h"

namespace brant::port::test {
namespace {

/// `count` wires of one network, each connected to each.
struct Net {
  explicit Net(const LoopbackOptions& options, std::size_t count = 2) : network(options) {
    for (std::size_t i = 0; i < count; ++i) wires.push_back(network.open_wire());
    for (auto& from : wires) {
      auto& row = to.emplace_back();
      for (auto& target : wires) row.push_back(*from->connect(target->address()));
    }
  }
  template <typename Done>
  bool run(Done&& done) {
    for (int i = 0; i < 100000; ++i) {
      if (done()) return true;
      for (auto& wire : wires) {
        if (!wire) continue;
        wire->progress();
        wire->deliver(8);
      }
    }
    return false;
  }
  void send(std::size_t from, std::size_t target, std::uint64_t tag, const std::uint64_t& value, Tracked& op) {
    op.posted = wires[from]->tag_send(to[from][target], tag, ConstBuffer{&value, 8, MemoryKind::host}, op);
  }
  void recv(std::size_t at, std::uint64_t tag, std::uint64_t mask, std::uint64_t& value, Tracked& op) {
    op.posted = wires[at]->tag_recv(tag, mask, Buffer{&value, 8, MemoryKind::host}, op);
  }

  LoopbackNetwork network;
  std::vector<std::unique_ptr<Wire>> wires;
  std::vector<std::vector<WireEndpoint*>> to;
};

/// The order in which messages of two senders with different tags arrive at wire 0.
std::vector<std::uint64_t> arrival_order(const LoopbackOptions& options) {
  Net net(options, 3);
  std::deque<Tracked> ops(40);
  std::vector<std::uint64_t> values(20), got(20);
  std::vector<std::uint64_t> order;
  for (std::size_t i = 0; i < 20; ++i) {
    values[i] = i;
    net.send(1 + i % 2, 0, i / 2, values[i], ops[i]);
  }
  for (std::size_t i = 0; i < 20; ++i) {
    net.recv(0, 0, 0, got[i], ops[20 + i]);
    EXPECT_TRUE(net.run([&] { return ops[20 + i].done(); }));
    order.push_back(got[i]);
  }
  return order;
}

TEST(Loopback, one_seed_gives_one_order) {
  LoopbackOptions options;
  options.delay_max = 5;
  options.shuffle_pairs = options.shuffle_tags = true;
  options.seed = 11;
  const auto first = arrival_order(options);
  EXPECT_EQ(arrival_order(options), first);
  std::set<std::vector<std::uint64_t>> orders;
  for (options.seed = 0; options.seed < 20; ++options.seed) orders.insert(arrival_order(options));
  EXPECT_GT(orders.size(), 10u) << "seeds hardly matter";
}

TEST(Loopback, every_message_arrives_once_whatever_the_seed) {
  LoopbackOptions options;
  options.delay_min = 1;
  options.delay_max = 9;
  options.shuffle_pairs = options.shuffle_tags = true;
  for (options.seed = 0; options.seed < 50; ++options.seed) {
    auto order = arrival_order(options);
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], i) << "seed " << options.seed;
  }
}

TEST(Loopback, without_tag_shuffling_each_pair_keeps_its_order) {
  LoopbackOptions options;
  options.delay_max = 5;
  options.shuffle_pairs = true;
  for (options.seed = 0; options.seed < 50; ++options.seed) {
    const auto order = arrival_order(options);
    for (const std::uint64_t parity : {0u, 1u}) {
      std::vector<std::uint64_t> of_one;
      std::copy_if(order.begin(), order.end(), std::back_inserter(of_one),
                   [&](std::uint64_t v) { return v % 2 == parity; });
      EXPECT_TRUE(std::is_sorted(of_one.begin(), of_one.end())) << "seed " << options.seed;
    }
  }
}

TEST(Loopback, a_delayed_message_takes_its_time) {
  Net net({.delay_min = 5, .delay_max = 5});
  std::uint64_t out = 1, in = 0;
  Tracked sent, received;
  net.recv(1, 1, kWholeTag, in, received);
  net.send(0, 1, 1, out, sent);
  for (int i = 0; i < 4; ++i) net.wires[1]->progress();
  EXPECT_EQ(net.wires[1]->deliver(8), 0u);
  net.wires[1]->progress();
  EXPECT_EQ(net.wires[1]->deliver(8), 1u);
}

TEST(Loopback, small_sends_are_done_at_once_and_large_ones_wait) {
  Net net({.eager_bytes_max = 100});
  const auto small = pattern(100, 1), large = pattern(101, 1);
  Tracked first, second, received;
  std::vector<std::byte> in(101);
  EXPECT_EQ(net.wires[0]->tag_send(net.to[0][1], 1, host(small), first), Status::ok);
  second.posted = net.wires[0]->tag_send(net.to[0][1], 2, host(large), second);
  EXPECT_EQ(second.posted, Status::in_progress);
  EXPECT_FALSE(net.run([&] { return second.done(); }));
  received.posted = net.wires[1]->tag_recv(2, kWholeTag, host(in), received);
  EXPECT_TRUE(net.run([&] { return second.done() && received.done(); }));
  EXPECT_EQ(in, large);
}

TEST(Loopback, a_full_receiver_makes_small_sends_wait) {
  Net net({.messages_max = 3});
  std::uint64_t value = 7;
  std::deque<Tracked> sends(5);
  for (Tracked& op : sends) net.send(0, 1, 1, value, op);
  EXPECT_EQ(sends[2].posted, Status::ok);
  EXPECT_EQ(sends[3].posted, Status::in_progress);
  Tracked am;
  EXPECT_EQ(net.wires[0]->am_send(net.to[0][1], 1, {}, ConstBuffer{&value, 8, MemoryKind::host}, am),
            Status::limit_reached);
  std::uint64_t in = 0;
  for (int i = 0; i < 5; ++i) {
    Tracked received;
    net.recv(1, 1, kWholeTag, in, received);
    ASSERT_TRUE(net.run([&] { return received.done(); }));
  }
  EXPECT_TRUE(net.run([&] { return sends[3].done() && sends[4].done(); }));
}

TEST(Loopback, operations_in_flight_are_bounded_by_the_option) {
  Net net({.requests_max = 4});
  std::uint64_t in[5];
  std::deque<Tracked> receives(5);
  for (std::size_t i = 0; i < 5; ++i) net.recv(1, i, kWholeTag, in[i], receives[i]);
  EXPECT_EQ(receives[3].posted, Status::in_progress);
  EXPECT_EQ(receives[4].posted, Status::limit_reached);
  net.wires[1]->cancel(receives[0]);
  ASSERT_TRUE(net.run([&] { return receives[0].completions == 1; }));
  net.recv(1, 9, kWholeTag, in[4], receives[4]);
  EXPECT_EQ(receives[4].posted, Status::in_progress);
}

TEST(Loopback, a_killed_wire_is_silent) {
  Net net({}, 3);
  const auto large = pattern(100000, 1);
  std::vector<std::byte> in(100000);
  std::uint64_t value = 5, got = 0;
  Tracked to_dead_small, to_dead_large, from_dead, eager_from_dead, receive_large, receive_small, receive_other, other;
  from_dead.posted = net.wires[1]->tag_send(net.to[1][0], 10, host(large), from_dead);
  net.send(1, 0, 11, value, eager_from_dead);
  to_dead_large.posted = net.wires[0]->tag_send(net.to[0][1], 1, host(large), to_dead_large);
  net.network.kill(1);
  net.send(0, 1, 2, value, to_dead_small);
  EXPECT_EQ(to_dead_small.posted, Status::ok) << "the sender cannot know";
  receive_large.posted = net.wires[0]->tag_recv(10, kWholeTag, host(in), receive_large);
  net.recv(0, 11, kWholeTag, got, receive_small);
  EXPECT_FALSE(net.run([&] { return to_dead_large.done() || receive_large.done() || from_dead.done(); }));
  EXPECT_TRUE(receive_small.done()) << "what had arrived before stays";
  EXPECT_EQ(got, 5u);
  EXPECT_EQ(net.wires[1]->tag_send(net.to[1][0], 1, host(large), other), Status::shutting_down);
  EXPECT_EQ(net.wires[1]->progress(), 0u);
  net.recv(0, 20, kWholeTag, got, receive_other);
  net.send(2, 0, 20, value, other);
  EXPECT_TRUE(net.run([&] { return receive_other.done(); })) << "the others go on";
  net.wires[0]->disconnect(net.to[0][1]);
  net.wires[0]->abandon(receive_large);
  EXPECT_TRUE(net.run([&] { return to_dead_large.done() && receive_large.done(); }));
  EXPECT_EQ(to_dead_large.outcome(), Status::canceled);
  EXPECT_EQ(receive_large.outcome(), Status::canceled);
}

TEST(Loopback, a_waiting_payload_of_the_dead_ends_with_peer_lost) {
  Net net({});
  std::vector<AmMessage> kept;
  net.wires[0]->set_am_handler(
      1,
      [](void* context, AmMessage& message) noexcept {
        static_cast<std::vector<AmMessage>*>(context)->push_back(message);
      },
      &kept);
  const auto large = pattern(100000, 1);
  std::vector<std::byte> in(100000);
  Tracked sent, landed;
  sent.posted = net.wires[1]->am_send(net.to[1][0], 1, {}, host(large), sent);
  ASSERT_TRUE(net.run([&] { return kept.size() == 1; }));
  net.network.kill(1);
  landed.posted = net.wires[0]->am_receive(kept[0], host(in), landed);
  ASSERT_TRUE(net.run([&] { return landed.done(); }));
  EXPECT_EQ(landed.outcome(), Status::peer_lost);
}

TEST(Loopback, a_closed_wire_leaves_its_peers_whole) {
  Net net({}, 3);
  const auto large = pattern(100000, 1);
  std::vector<std::byte> in(8);
  std::deque<Tracked> ops(4);
  ops[0].posted = net.wires[1]->tag_send(net.to[1][0], 1, host(large), ops[0]);
  ops[1].posted = net.wires[0]->tag_send(net.to[0][1], 2, host(large), ops[1]);
  ops[2].posted = net.wires[1]->tag_recv(3, kWholeTag, host(in), ops[2]);
  net.wires[1].reset();
  EXPECT_EQ(net.wires[0]->tag_send(net.to[0][1], 5, host(in), ops[3]), Status::ok);
  EXPECT_FALSE(net.run([&] { return ops[1].done(); }));
  net.wires[0]->disconnect(net.to[0][1]);
  EXPECT_TRUE(net.run([&] { return ops[1].done(); }));
}

TEST(Loopback, other_kinds_of_memory_go_through_the_copy_hook) {
  struct Device {
    std::vector<std::byte> memory = std::vector<std::byte>(1000000);
    int copies = 0;
    bool broken = false;
    static bool copy(void* context, Buffer target, ConstBuffer source) noexcept {
      auto& me = *static_cast<Device*>(context);
      ++me.copies;
      if (!me.broken) std::memmove(target.data, source.data, source.bytes);
      return !me.broken;
    }
  } device;
  LoopbackOptions options;
  options.extra_kinds = 1u << static_cast<unsigned>(MemoryKind::emulated);
  options.copy = &Device::copy;
  options.copy_context = &device;
  Net net(options);
  EXPECT_TRUE(net.wires[0]->capabilities().takes(MemoryKind::emulated));
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{500000}}) {
    for (const bool recv_first : {true, false}) {
      const auto out = pattern(bytes, bytes);
      Tracked sent, received;
      const Buffer landing{device.memory.data(), bytes, MemoryKind::emulated};
      if (recv_first) received.posted = net.wires[1]->tag_recv(1, kWholeTag, landing, received);
      sent.posted = net.wires[0]->tag_send(net.to[0][1], 1, host(out), sent);
      if (!recv_first) received.posted = net.wires[1]->tag_recv(1, kWholeTag, landing, received);
      ASSERT_TRUE(net.run([&] { return sent.done() && received.done(); }));
      EXPECT_TRUE(std::equal(out.begin(), out.end(), device.memory.begin()));
    }
  }
  EXPECT_GE(device.copies, 4);
  device.broken = true;
  std::uint64_t value = 1;
  Tracked sent, received;
  received.posted =
      net.wires[1]->tag_recv(1, kWholeTag, Buffer{device.memory.data(), 8, MemoryKind::emulated}, received);
  net.send(0, 1, 1, value, sent);
  ASSERT_TRUE(net.run([&] { return received.done(); }));
  EXPECT_EQ(received.outcome(), Status::device_failed);
}

TEST(Loopback, contradictory_options_are_refused) {
  const auto refused = [](const LoopbackOptions& options) {
    try {
      LoopbackNetwork network(options);
      return Status::ok;
    } catch (const Error& error) {
      return error.status();
    }
  };
  EXPECT_EQ(refused({.delay_min = 3, .delay_max = 2}), Status::invalid_argument);
  EXPECT_EQ(refused({.requests_max = 0}), Status::invalid_argument);
  EXPECT_EQ(refused({.messages_max = 0}), Status::invalid_argument);
  EXPECT_EQ(refused({.extra_kinds = 1u << static_cast<unsigned>(MemoryKind::cuda)}), Status::invalid_argument);
  EXPECT_EQ(refused({}), Status::ok);
}

TEST(Loopback, an_address_of_another_network_is_refused) {
  Net one({}), two({});
  EXPECT_EQ(one.wires[0]->connect(two.wires[0]->address()).status(), Status::invalid_argument);
  const std::vector<std::byte> closed(one.wires[1]->address().begin(), one.wires[1]->address().end());
  one.wires[1].reset();
  EXPECT_EQ(one.wires[0]->connect(closed).status(), Status::peer_lost);
}

TEST(Loopback, a_key_to_a_released_segment_is_refused) {
  Net net({});
  RemoteMemory& owner = *net.wires[1]->remote_memory();
  RemoteMemory& user = *net.wires[0]->remote_memory();
  Result<WireSegment*> segment = owner.allocate_shared(64);
  ASSERT_TRUE(segment);
  const auto address = reinterpret_cast<std::uintptr_t>(owner.memory_of(*segment).data);
  const Result<WireKey*> key = user.import_key(net.to[0][1], *owner.pack_key(*segment));
  ASSERT_TRUE(key);
  owner.release_segment(*segment);
  std::uint64_t value = 1;
  Tracked op;
  EXPECT_EQ(user.put(net.to[0][1], *key, address, ConstBuffer{&value, 8, MemoryKind::host}, op),
            Status::invalid_argument);
  EXPECT_EQ(user.map_remote(*key, address).status(), Status::invalid_argument);
}

TEST(Loopback, a_wire_of_its_own_talks_to_itself) {
  auto wire = open_loopback_wire();
  WireEndpoint* self = *wire->connect(wire->address());
  std::uint64_t out = 9, in = 0;
  Tracked sent, received;
  received.posted = wire->tag_recv(1, kWholeTag, Buffer{&in, 8, MemoryKind::host}, received);
  EXPECT_EQ(wire->tag_send(self, 1, ConstBuffer{&out, 8, MemoryKind::host}, sent), Status::ok);
  wire->progress();
  EXPECT_EQ(wire->deliver(8), 1u);
  EXPECT_EQ(in, 9u);
}

}  // namespace
}  // namespace brant::port::test
