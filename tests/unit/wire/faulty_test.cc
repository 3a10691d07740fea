#include "port/wire/faulty/faulty.h"

#include <deque>

#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "conformance/wire/subject.h"
#include "port/wire/loopback/loopback.h"

namespace brant::port::test {
namespace {

/// `left` is faulty, `right` is not.
struct Rig {
  explicit Rig(FaultPolicy policy, bool both = false) {
    pair.left = std::make_unique<FaultyWire>(network.open_wire(), policy);
    if (both) {
      pair.right = std::make_unique<FaultyWire>(network.open_wire(), policy);
    } else {
      pair.right = network.open_wire();
    }
    pair.to_right = *pair.left->connect(pair.right->address());
    pair.to_left = *pair.right->connect(pair.left->address());
  }
  FaultyWire& left() { return static_cast<FaultyWire&>(*pair.left); }
  void send(Tracked& op) {
    op.posted = pair.left->tag_send(pair.to_right, 1, ConstBuffer{&value, 8, MemoryKind::host}, op);
  }
  void recv(Tracked& op) { op.posted = pair.left->tag_recv(1, kWholeTag, Buffer{&landed, 8, MemoryKind::host}, op); }
  bool done(Tracked& op) {
    return pump(pair, [&] { return op.done(); }, std::chrono::milliseconds(200));
  }

  LoopbackNetwork network;
  WirePair pair;
  std::uint64_t value = 42, landed = 0;
};

FaultPolicy one_rule(FaultPoint point, FaultEffect effect, std::uint64_t nth, Status status = Status::io_error) {
  FaultPolicy policy;
  FaultRule rule;
  rule.point = point;
  rule.effect = effect;
  rule.nth = nth;
  rule.status = status;
  policy.rules.push_back(rule);
  return policy;
}

TEST(Faulty, the_nth_post_is_refused_and_no_other) {
  Rig rig(one_rule(FaultPoint::tag_send, FaultEffect::refuse, 3, Status::limit_reached));
  std::deque<Tracked> ops(5);
  for (Tracked& op : ops) rig.send(op);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(ops[i].posted, i == 2 ? Status::limit_reached : Status::ok) << i;
  EXPECT_EQ(rig.left().counts().refused, 1u);
}

TEST(Faulty, a_failed_operation_completes_with_the_status_and_does_nothing) {
  Rig rig(one_rule(FaultPoint::tag_send, FaultEffect::fail, 1, Status::peer_lost));
  Tracked sent, received;
  std::uint64_t in = 0;
  rig.send(sent);
  EXPECT_EQ(sent.posted, Status::in_progress);
  ASSERT_TRUE(rig.done(sent));
  EXPECT_EQ(sent.outcome(), Status::peer_lost);
  received.posted = rig.pair.right->tag_recv(1, kWholeTag, Buffer{&in, 8, MemoryKind::host}, received);
  EXPECT_FALSE(rig.done(received)) << "it must not have been sent";
  EXPECT_EQ(rig.left().counts().failed, 1u);
}

TEST(Faulty, a_lost_completion_comes_back_as_canceled) {
  Rig rig(one_rule(FaultPoint::tag_recv, FaultEffect::lose, 1));
  Tracked sent, received;
  rig.recv(received);
  sent.posted = rig.pair.right->tag_send(rig.pair.to_left, 1, ConstBuffer{&rig.value, 8, MemoryKind::host}, sent);
  EXPECT_FALSE(rig.done(received));
  EXPECT_EQ(rig.landed, 42u) << "performed, only not reported";
  EXPECT_EQ(rig.left().counts().lost, 1u);
  rig.pair.left->cancel(received);
  ASSERT_TRUE(rig.done(received));
  EXPECT_EQ(received.outcome(), Status::canceled);
  EXPECT_EQ(received.completions, 1);
}

TEST(Faulty, a_lost_send_ends_with_the_endpoint) {
  Rig rig(one_rule(FaultPoint::tag_send, FaultEffect::lose, 1));
  Tracked sent;
  rig.send(sent);
  EXPECT_EQ(sent.posted, Status::in_progress);
  EXPECT_FALSE(rig.done(sent));
  rig.pair.left->disconnect(rig.pair.to_right);
  ASSERT_TRUE(rig.done(sent));
  EXPECT_EQ(sent.outcome(), Status::canceled);
}

TEST(Faulty, a_rate_hits_about_that_share_and_the_seed_repeats_it) {
  const auto hits = [](std::uint64_t seed) {
    FaultPolicy policy = one_rule(FaultPoint::am_send, FaultEffect::refuse, 0);
    policy.rules[0].rate = 0.25;
    policy.seed = seed;
    Rig rig(policy);
    std::vector<bool> refused;
    for (int i = 0; i < 400; ++i) {
      Tracked op;
      refused.push_back(rig.pair.left->am_send(rig.pair.to_right, 1, {}, ConstBuffer{}, op) == Status::io_error);
    }
    return refused;
  };
  const auto first = hits(3);
  EXPECT_EQ(hits(3), first);
  EXPECT_NE(hits(4), first);
  const auto count = std::count(first.begin(), first.end(), true);
  EXPECT_GT(count, 60);
  EXPECT_LT(count, 140);
}

TEST(Faulty, completions_are_held_back_for_the_given_time) {
  FaultPolicy policy;
  policy.completion_delay = 3;
  Rig rig(policy);
  Tracked sent;
  rig.send(sent);
  ASSERT_EQ(sent.posted, Status::in_progress) << "even those that were done at once";
  for (int i = 0; i < 2; ++i) {
    rig.pair.left->progress();
    EXPECT_EQ(rig.pair.left->deliver(8), 0u);
  }
  rig.pair.left->progress();
  EXPECT_EQ(rig.pair.left->deliver(8), 1u);
  EXPECT_EQ(sent.outcome(), Status::ok);
  EXPECT_EQ(rig.left().counts().delayed, 1u);
}

TEST(Faulty, active_messages_can_come_twice) {
  FaultPolicy policy;
  policy.repeat_rate = 1;
  Rig rig(policy);
  std::vector<std::uint64_t> got;
  rig.pair.left->set_am_handler(
      1,
      [](void* context, AmMessage& message) noexcept {
        std::uint64_t value = 0;
        std::memcpy(&value, message.data, 8);
        static_cast<std::vector<std::uint64_t>*>(context)->push_back(value);
      },
      &got);
  Tracked sent;
  sent.posted = rig.pair.right->am_send(rig.pair.to_left, 1, {}, ConstBuffer{&rig.value, 8, MemoryKind::host}, sent);
  pump(rig.pair, [&] { return got.size() == 2; }, std::chrono::milliseconds(500));
  pump_for(rig.pair);
  EXPECT_EQ(got, (std::vector<std::uint64_t>{42, 42})) << "twice, not more";
  EXPECT_EQ(rig.left().counts().repeated, 1u);
}

TEST(Faulty, a_corrupted_key_is_refused_by_the_importer) {
  FaultPolicy policy;
  policy.corrupt_nth_key = 2;
  Rig rig(policy);
  RemoteMemory& owner = *rig.pair.left->remote_memory();
  Result<WireSegment*> segment = owner.allocate_shared(64);
  ASSERT_TRUE(segment);
  const auto good = owner.pack_key(*segment), bad = owner.pack_key(*segment);
  RemoteMemory& user = *rig.pair.right->remote_memory();
  EXPECT_TRUE(user.import_key(rig.pair.to_left, *good));
  EXPECT_FALSE(user.import_key(rig.pair.to_left, *bad));
  EXPECT_EQ(rig.left().counts().corrupted, 1u);
}

TEST(Faulty, while_held_nothing_moves_and_afterwards_everything) {
  Rig rig({});
  Tracked sent, received;
  rig.recv(received);
  rig.left().hold(true);
  sent.posted = rig.pair.right->tag_send(rig.pair.to_left, 1, ConstBuffer{&rig.value, 8, MemoryKind::host}, sent);
  EXPECT_FALSE(rig.done(received));
  EXPECT_FALSE(rig.pair.left->arm());
  rig.left().hold(false);
  ASSERT_TRUE(rig.done(received));
  EXPECT_EQ(rig.landed, 42u);
}

TEST(Faulty, one_sided_operations_can_fail) {
  Rig rig(one_rule(FaultPoint::put, FaultEffect::fail, 2, Status::io_error));
  RemoteMemory& owner = *rig.pair.right->remote_memory();
  Result<WireSegment*> segment = owner.allocate_shared(64);
  ASSERT_TRUE(segment);
  const auto address = reinterpret_cast<std::uintptr_t>(owner.memory_of(*segment).data);
  RemoteMemory& user = *rig.pair.left->remote_memory();
  const Result<WireKey*> key = user.import_key(rig.pair.to_right, *owner.pack_key(*segment));
  ASSERT_TRUE(key);
  for (const Status expected : {Status::ok, Status::io_error, Status::ok}) {
    Tracked put;
    put.posted = user.put(rig.pair.to_right, *key, address, ConstBuffer{&rig.value, 8, MemoryKind::host}, put);
    ASSERT_TRUE(rig.done(put));
    EXPECT_EQ(put.outcome(), expected);
  }
}

TEST(Faulty, rules_that_can_never_apply_are_refused) {
  LoopbackNetwork network;
  EXPECT_THROW(FaultyWire(network.open_wire(), one_rule(FaultPoint::put, FaultEffect::refuse, 0)), Error);
  EXPECT_THROW(FaultyWire(network.open_wire(), one_rule(FaultPoint::put, FaultEffect::refuse, 1, Status::ok)), Error);
  EXPECT_NO_THROW(FaultyWire(network.open_wire(), one_rule(FaultPoint::put, FaultEffect::refuse, 1)));
}

TEST(Faulty, its_name_says_what_is_inside) {
  Rig rig({});
  EXPECT_EQ(rig.pair.left->capabilities().name, "faulty(loopback)");
}

}  // namespace
}  // namespace brant::port::test
