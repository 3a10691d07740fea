// Messages that one end cannot send or take after both ends count on them: both ends hear of it, and the next message
// arrives.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "port/wire/faulty/faulty.h"
#include "support/faulty_device.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::DeviceFaults;
using test::JobOptions;
using test::kLarge;
using test::linked;
using test::MappedPair;
using test::pattern;

struct Faults {
  DeviceFaults faults[2];
};

struct FaultyPair : Faults, MappedPair {
  explicit FaultyPair(const JobOptions& options) : MappedPair(breaking(options, faults)) {}
  static JobOptions breaking(JobOptions options, DeviceFaults (&faults)[2]) {
    options.gpu = GpuChoice::emulated;
    options.wrap_device = [&faults](int rank, std::unique_ptr<port::Device> device) {
      return test::make_faulty(std::move(device), faults[rank]);
    };
    return options;
  }

  Memory landing(MemoryKind kind, std::size_t bytes) { return job.rank(1).allocate(kind, bytes); }

  /// A message from memory of rank 0 into `into`, which `break_it` spoils when both have been posted, or before.
  struct Ends {
    OpResult send, receive;
  };
  Ends exchange(ConstBuffer source, Buffer into, Moment until, const std::function<void()>& break_it) {
    Operation receive = right.recv(into);
    job.run(5);
    break_it();
    Operation send = left.send(source, until);
    const OpResult sent = outcome(send);
    const OpResult received = outcome(receive);
    faults[0] = faults[1] = {};
    return {sent, received};
  }

  void expect_whole_message_between(MemoryKind from, MemoryKind to, std::size_t bytes) {
    const auto sent = pattern(bytes, 8);
    Memory source = job.rank(0).allocate(from, bytes);
    job.rank(0).copy(source, std::span(sent));
    Memory into = landing(to, bytes);
    Operation receive = right.recv(into);
    Operation send = left.send(source, Moment::delivered);
    EXPECT_EQ(outcome(send).status, Status::ok);
    EXPECT_EQ(outcome(receive).status, Status::ok);
    EXPECT_EQ(contents(1, into), sent);
  }
};

TEST(FailedMessage, a_small_one_that_finds_no_pinned_memory_ends_at_both_ends_and_the_next_arrives) {
  for (const bool receive_first : {true, false}) {
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{1000}}) {  // kept in its record, and not
      SCOPED_TRACE(testing::Message() << bytes << (receive_first ? " receive first" : " send first"));
      FaultyPair pair(linked(GpuChoice::emulated));
      const auto sent = pattern(bytes, 1);
      Memory into = pair.landing(MemoryKind::emulated, bytes);
      pair.faults[1].pinned = Status::no_memory;
      std::unique_ptr<Operation> receive;
      if (receive_first) receive.reset(new Operation(pair.right.recv(into)));
      Operation send = pair.left.send(std::span(sent), Moment::delivered);
      pair.job.run(20);
      if (!receive_first) receive.reset(new Operation(pair.right.recv(into)));
      EXPECT_EQ(pair.outcome(*receive).status, Status::no_memory);
      EXPECT_EQ(pair.outcome(send).status, Status::peer_rejected);
      pair.faults[1] = {};
      pair.expect_whole_message_between(MemoryKind::host, MemoryKind::emulated, bytes);
      test::expect_order_goes_on(pair);
    }
  }
}

TEST(FailedMessage, copies_into_mapped_landings_that_fail_end_at_both_ends) {
  FaultyPair pair(linked(GpuChoice::emulated));
  Memory source = pair.filled(0, pattern(kLarge, 1));
  Memory into = pair.landing(MemoryKind::emulated, kLarge);
  const auto ends =
      pair.exchange(source, into, Moment::source_free, [&] { pair.faults[0].events = Status::device_failed; });
  EXPECT_EQ(ends.send.status, Status::device_failed);
  EXPECT_EQ(ends.receive.status, Status::peer_rejected);
  pair.expect_whole_message_between(MemoryKind::emulated, MemoryKind::emulated, kLarge);
  test::expect_order_goes_on(pair);
}

TEST(FailedMessage, an_early_one_that_fails_on_its_way_into_a_slot_gives_the_slot_back) {
  FaultyPair pair(linked(GpuChoice::emulated));
  constexpr std::size_t kSmall = 1000;
  Memory source = pair.filled(0, pattern(kSmall, 1));
  Memory into = pair.landing(MemoryKind::emulated, kSmall);
  for (int message = 0; message < 70; ++message) {  // more than there are slots
    pair.faults[0].events = Status::device_failed;
    pair.faults[0].copies = Status::device_failed;
    Operation send = pair.left.send(source);
    const Status sent = pair.outcome(send).status;
    pair.faults[0] = {};
    Operation receive = pair.right.recv(into);
    const Status received = pair.outcome(receive).status;
    // A courier does not fail.
    ASSERT_TRUE((sent == Status::ok && received == Status::ok) ||
                (sent == Status::device_failed && received == Status::peer_rejected))
        << message << ": " << status_name(sent) << ", " << status_name(received);
  }
  pair.expect_whole_message_between(MemoryKind::emulated, MemoryKind::emulated, kSmall);
}

/// Device memory that goes through the host at both ends.
void expect_staged_failures_are_told(JobOptions options) {
  options.runtime.path = Path::staged;
  for (const std::size_t bytes : {std::size_t{1000}, kLarge}) {
    SCOPED_TRACE(bytes);
    FaultyPair pair(options);
    Memory source = pair.filled(0, pattern(bytes, 1));
    Memory into = pair.landing(MemoryKind::emulated, bytes);
    auto ends =
        pair.exchange(source, into, Moment::source_free, [&] { pair.faults[0].events = Status::device_failed; });
    EXPECT_EQ(ends.send.status, Status::device_failed);
    EXPECT_EQ(ends.receive.status, Status::peer_rejected);
    pair.expect_whole_message_between(MemoryKind::emulated, MemoryKind::emulated, bytes);
    for (Status DeviceFaults::* what : {&DeviceFaults::copies, &DeviceFaults::events}) {
      ends = pair.exchange(source, into, Moment::delivered, [&] { pair.faults[1].*what = Status::device_failed; });
      EXPECT_EQ(ends.send.status, Status::peer_rejected);
      EXPECT_EQ(ends.receive.status, Status::device_failed);
      pair.expect_whole_message_between(MemoryKind::emulated, MemoryKind::emulated, bytes);
    }
    test::expect_order_goes_on(pair);
  }
}

TEST(FailedMessage, copies_to_and_from_the_host_that_fail_end_at_both_ends) {
  expect_staged_failures_are_told(linked(GpuChoice::emulated));
}

TEST(FailedMessage, the_same_over_a_network) {
  JobOptions options = linked(GpuChoice::emulated);
  options.links = false;
  expect_staged_failures_are_told(options);
}

TEST(FailedMessage, one_whose_stage_buffer_is_missing_when_its_receive_is_known_ends_at_both_ends) {
  JobOptions options = linked(GpuChoice::emulated);
  options.mappable = [](const port::ExportRecord&) { return false; };
  for (const bool receive_first : {true, false}) {
    FaultyPair pair(options);
    Memory source = pair.filled(0, pattern(kLarge, 1));
    Memory into = pair.landing(MemoryKind::emulated, kLarge);
    pair.faults[0].pinned = Status::no_memory;
    Operation send = pair.left.send(source);
    EXPECT_FALSE(send.done());
    if (receive_first) pair.job.run(5);
    Operation receive = pair.right.recv(into);
    EXPECT_EQ(pair.outcome(send).status, Status::no_memory);
    EXPECT_EQ(pair.outcome(receive).status, Status::peer_rejected);
    pair.faults[0] = {};
    pair.expect_whole_message_between(MemoryKind::emulated, MemoryKind::emulated, kLarge);
    test::expect_order_goes_on(pair);
  }
}

TEST(FailedMessage, a_landing_without_its_stage_buffer_leaves_the_message_to_the_next_receive) {
  JobOptions options = linked(GpuChoice::emulated);
  options.mappable = [](const port::ExportRecord&) { return false; };
  for (const bool receive_first : {true, false}) {
    SCOPED_TRACE(receive_first ? "receive first" : "send first");
    FaultyPair pair(options);
    const auto sent = pattern(kLarge, 1);
    Memory into = pair.landing(MemoryKind::emulated, kLarge);
    std::unique_ptr<Operation> receive;
    if (receive_first) receive.reset(new Operation(pair.right.recv(into)));
    pair.job.run(5);
    pair.faults[1].pinned = Status::no_memory;
    Operation send = pair.left.send(std::span(sent));
    pair.job.run(5);
    if (!receive_first) receive.reset(new Operation(pair.right.recv(into)));
    EXPECT_EQ(pair.outcome(*receive).status, Status::no_memory);
    pair.faults[1] = {};
    Operation again = pair.right.recv(into);
    EXPECT_EQ(pair.outcome(again).status, Status::ok);
    EXPECT_EQ(pair.outcome(send).status, Status::ok);
    EXPECT_EQ(pair.contents(1, into), sent);
    test::expect_order_goes_on(pair);
  }
}

TEST(FailedMessage, one_that_the_network_takes_and_then_fails_is_told_to_its_receive_whichever_comes_first) {
  for (const bool receive_first : {true, false}) {
    SCOPED_TRACE(receive_first ? "receive first" : "send first");
    JobOptions options;
    options.links = false;
    options.wrap = [](int rank, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
      if (rank != 0) return wire;
      port::FaultPolicy policy;
      policy.rules = {{.point = port::FaultPoint::tag_send,
                       .effect = port::FaultEffect::fail,
                       .nth = 1,
                       .status = Status::no_memory}};
      return std::make_unique<port::FaultyWire>(std::move(wire), policy);
    };
    test::Pair pair(options);
    int value = 1, got = 0;
    std::unique_ptr<Operation> receive;
    if (receive_first) receive.reset(new Operation(pair.right.recv(Buffer(&got, sizeof(got)))));
    Operation send = pair.left.send(ConstBuffer(&value, sizeof(value)));
    EXPECT_EQ(pair.outcome(send).status, Status::no_memory);
    pair.job.run(20);
    if (!receive_first) receive.reset(new Operation(pair.right.recv(Buffer(&got, sizeof(got)))));
    EXPECT_EQ(pair.outcome(*receive).status, Status::peer_rejected);
    test::expect_order_goes_on(pair);
  }
}

}  // namespace
}  // namespace brant
