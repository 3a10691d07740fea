// Bells of a device: rung by kernels, streams, the host and another process, and what becomes of those who
// wait when nothing rings.
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brant/core/device.h"
#include "brant/core/runtime.h"
#include "brant/core/task.h"
#include "brant/notify.h"
#include "support/gpu_of_tests.h"
#include "support/in_process_job.h"
#include "support/kernels/kernels.h"
#include "support/refused.h"

namespace brant::test {
namespace {

using namespace std::chrono_literals;

JobOptions with_devices(int ranks) {
  JobOptions options;
  options.ranks = ranks;
  options.links = ranks > 1;
  options.gpu = gpu_of_tests();
  return options;
}

class Bells : public testing::Test {
 protected:
  Runtime& runtime() { return job_.rank(0); }
  Status outcome(const Operation& operation) { return job_.outcome(operation).status; }
  void kernel_rings(const Bell& bell, std::uint64_t epoch) {
    ASSERT_EQ(kernel_.launch({}, stream_, bell.device(), epoch), Status::ok);
  }

  InProcessJob job_{with_devices(1)};
  Stream stream_ = runtime().device().create_stream();
  RingKernel kernel_ = ring_kernel(runtime().device());
  Notifier notifier_{runtime(), {.bells = 100, .others = 8, .waits = 256}};
};

TEST_F(Bells, a_kernel_rings_and_the_wait_ends) {
  Bell bell = notifier_.make();
  Operation wait = bell.when(1);
  job_.run(10);
  EXPECT_FALSE(wait.done());
  kernel_rings(bell, 1);
  EXPECT_EQ(outcome(wait), Status::ok);
  EXPECT_EQ(bell.epoch(), 1u);
  EXPECT_EQ(outcome(bell.when(1)), Status::ok) << "it has come already";
}

TEST_F(Bells, each_wait_ends_with_its_epoch) {
  Bell bell = notifier_.make();
  Operation third = bell.when(3);
  Operation first = bell.when(1);
  kernel_rings(bell, 2);
  EXPECT_EQ(outcome(first), Status::ok);
  job_.run(10);
  EXPECT_FALSE(third.done());
  kernel_rings(bell, 3);
  EXPECT_EQ(outcome(third), Status::ok);
}

TEST_F(Bells, a_stream_rings_and_a_stream_waits) {
  Bell there = notifier_.make();
  Bell back = notifier_.make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
  ASSERT_EQ(back.enqueue_wait(stream_, 1), Status::ok);
  ASSERT_EQ(there.enqueue_ring(stream_, 1), Status::ok);
  Operation wait = there.when(1);
  job_.run(10);
  EXPECT_FALSE(wait.done()) << "the stream waits";
  ASSERT_EQ(back.ring(1), Status::ok);
  EXPECT_EQ(outcome(wait), Status::ok);
}

TEST_F(Bells, rings_in_a_captured_graph_have_the_epochs_of_the_capture) {
  Bell there = notifier_.make();
  Bell back = notifier_.make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
  port::Streams& streams = *runtime().device().inner().streams();
  StreamHandle stream = stream_;
  ASSERT_EQ(streams.begin_capture(stream), Status::ok);
  EXPECT_EQ(back.enqueue_wait(stream_, 1), Status::ok);
  EXPECT_EQ(there.enqueue_ring(stream_, 1), Status::ok);
  EXPECT_EQ(there.enqueue_ring(stream_, 2), Status::ok);
  const Result<port::Graph*> graph = streams.end_capture(stream);
  ASSERT_TRUE(graph.ok());
  Operation first = there.when(1);
  Operation second = there.when(2);
  job_.run(10);
  EXPECT_FALSE(first.done()) << "a capture runs nothing";
  ASSERT_EQ(streams.launch(*graph, stream), Status::ok);
  job_.run(10);
  EXPECT_FALSE(first.done()) << "the graph waits";
  ASSERT_EQ(back.ring(1), Status::ok);
  EXPECT_EQ(outcome(first), Status::ok);
  EXPECT_EQ(outcome(second), Status::ok);
  ASSERT_EQ(stream_.synchronize(), Status::ok);
  streams.destroy_graph(*graph);
}

Task<void> pass_on(Bell& from, Bell& to, Promise<std::uint64_t>& heard) {
  (co_await from.when(1)).or_throw("the first bell");
  EXPECT_EQ(to.ring(1), Status::ok);
  heard.deliver(from.epoch());
}

/// A kernel's ring goes on by the host: to a stream that waits for another bell, and into a future.
TEST_F(Bells, a_ring_rings_another_bell_and_completes_a_future) {
  Bell first = notifier_.make();
  Bell second = notifier_.make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
  Bell third = notifier_.make();
  ASSERT_EQ(second.enqueue_wait(stream_, 1), Status::ok);
  ASSERT_EQ(third.enqueue_ring(stream_, 1), Status::ok);
  Promise<std::uint64_t> heard;
  Future<std::uint64_t> future = heard.future();
  Stream other = runtime().device().create_stream();
  ASSERT_EQ(kernel_.launch({}, other, first.device(), std::uint64_t{1}), Status::ok);
  runtime().run(pass_on(first, second, heard));
  EXPECT_TRUE(future.ready());
  EXPECT_EQ(outcome(third.when(1)), Status::ok);
}

TEST_F(Bells, a_coroutine_that_is_destroyed_withdraws_itself) {
  Bell bell = notifier_.make();
  {
    Operation gone = bell.when(1);
    EXPECT_FALSE(gone.done());
  }
  kernel_rings(bell, 1);
  ASSERT_EQ(stream_.synchronize(), Status::ok);
  job_.run(10);
  EXPECT_EQ(outcome(bell.when(1)), Status::ok);
}

TEST_F(Bells, a_bell_that_closes_cancels_its_waits) {
  Bell bell = notifier_.make();
  Operation wait = bell.when(1);
  bell.close();
  EXPECT_EQ(outcome(wait), Status::canceled);
  EXPECT_EQ(bell.ring(1), Status::invalid_argument);
  EXPECT_EQ(bell.enqueue_ring(stream_, 1), Status::invalid_argument);
  EXPECT_EQ(outcome(bell.when(1)), Status::invalid_argument);
  Operation after = notifier_.make().when(1);
  EXPECT_EQ(outcome(after), Status::canceled) << "closed at the end of the statement";
}

TEST_F(Bells, a_notifier_that_closes_cancels_the_waits_of_all_bells) {
  Bell bell = notifier_.make();
  Operation wait = bell.when(1);
  notifier_.close();
  EXPECT_EQ(outcome(wait), Status::canceled);
  EXPECT_EQ(outcome(bell.when(1)), Status::invalid_argument);
}

TEST_F(Bells, a_wait_ends_when_its_patience_is_over) {
  Bell bell = notifier_.make();
  Operation longer = bell.when(1, Worker::kForever);
  Operation wait = bell.when(1, 5ms);
  EXPECT_EQ(outcome(wait), Status::timed_out);
  EXPECT_FALSE(longer.done());
  kernel_rings(bell, 1);
  EXPECT_EQ(outcome(longer), Status::ok);
}

TEST_F(Bells, a_word_that_is_used_again_begins_at_zero) {
  for (int turn = 0; turn < 300; ++turn) {
    Bell bell = notifier_.make();
    EXPECT_EQ(bell.epoch(), 0u);
    kernel_rings(bell, 7);
    EXPECT_EQ(outcome(bell.when(7)), Status::ok);
  }
}

TEST_F(Bells, all_that_are_open_at_once_are_seen) {
  std::vector<Bell> bells;
  for (int i = 0; i < 100; ++i) bells.push_back(notifier_.make());
  EXPECT_THROW(notifier_.make(), Error);
  for (Bell& bell : bells) {
    Operation wait = bell.when(1);
    kernel_rings(bell, 1);
    EXPECT_EQ(outcome(wait), Status::ok);
  }
}

TEST_F(Bells, what_contradicts_itself_is_refused) {
  EXPECT_THROW(notifier_.make({.place = BellPlace::bar1}), Error) << "the host sees it";
  EXPECT_THROW(notifier_.make({.rung_by = RungBy::device, .seen_by = SeenBy::device, .place = BellPlace::bar1}), Error);
  EXPECT_THROW(notifier_.make({.place = BellPlace::device}), Error);
  EXPECT_THROW(notifier_.make({.rung_by = RungBy::peer}), Error);
  EXPECT_THROW(notifier_.fan_in(0), Error);
  EXPECT_THROW(notifier_.fan_in(65536), Error);
  Bell bell = notifier_.make();
  EXPECT_EQ(bell.ring(1), Status::invalid_argument) << "the device rings it";
  EXPECT_EQ(bell.enqueue_wait(stream_, 1), Status::invalid_argument) << "the host sees it";
  EXPECT_THROW(static_cast<void>(bell.ticket()), Error);
  Bell mine = notifier_.make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
  ASSERT_EQ(mine.ring(2), Status::ok);
  EXPECT_EQ(mine.ring(1), Status::invalid_argument) << "epochs grow";
}

/// Kernels and streams see them as others; the CPU writes them in the memory of the device.
TEST_F(Bells, the_host_rings_through_the_bus) {
  const BellOptions through_the_bus{.rung_by = RungBy::host, .seen_by = SeenBy::device, .place = BellPlace::bar1};
  std::optional<Bell> made;
  try {
    made = notifier_.make(through_the_bus);
  } catch (const Error& error) {
    ASSERT_EQ(gpu_of_tests(), GpuChoice::cuda) << error.what();
    GTEST_SKIP() << error.what();
  }
  Bell there = notifier_.make();
  const PassOnKernel passing = pass_on_kernel(runtime().device());
  auto kernel = PersistentKernel::launch(notifier_, passing, {}, {.name = "passes"}, made->device(), there.device(),
                                         notifier_.fan_in(1));
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    Operation answer = there.when(epoch);
    job_.run(5);
    EXPECT_FALSE(answer.done());
    ASSERT_EQ(made->ring(epoch), Status::ok);
    EXPECT_EQ(outcome(answer), Status::ok);
  }
  EXPECT_EQ(made->ring(2), Status::invalid_argument) << "epochs grow";
  EXPECT_EQ(outcome(kernel.ended()), Status::ok);
  ASSERT_EQ(made->enqueue_wait(stream_, 4), Status::ok);
  ASSERT_EQ(made->ring(4), Status::ok);
  EXPECT_EQ(stream_.synchronize(), Status::ok);
  made.reset();
  Bell next = notifier_.make(through_the_bus);
  EXPECT_EQ(next.ring(1), Status::ok) << "it begins at 0 again";
}

TEST(BellsThroughTheBus, are_refused_with_the_cure_where_the_host_reaches_no_memory_of_the_device) {
  JobOptions options = with_devices(1);
  options.exportable = [](const port::PointerInfo&) { return true; };  // behind a wrapper without windows
  InProcessJob job(options);
  Notifier notifier(job.rank(0), {.bells = 16, .others = 1});
  const BellOptions through_the_bus{.rung_by = RungBy::host, .seen_by = SeenBy::device, .place = BellPlace::bar1};
  const std::string why = refused([&] { static_cast<void>(notifier.make(through_the_bus)); });
  EXPECT_THAT(why, testing::HasSubstr("not_supported: the CPU does not reach memory of"));
  EXPECT_THAT(why, testing::HasSubstr("use BellPlace::automatic"));
  static_cast<void>(notifier.make({.rung_by = RungBy::host, .seen_by = SeenBy::device}));  // its slot is free again
}

TEST(BellsOfPeers, a_kernel_of_another_rank_rings) {
  InProcessJob job(with_devices(2));
  Notifier owner(job.rank(0), {.bells = 16, .others = 8});
  for (const SeenBy seen_by : {SeenBy::host, SeenBy::device}) {
    Bell bell = owner.make({.rung_by = RungBy::peer, .seen_by = seen_by, .peer = Rank{1}});
    PeerBell there(job.rank(1), Rank{0}, BellTicket(bell.ticket().bytes()));
    Stream ringing = job.rank(1).device().create_stream();
    const RingKernel kernel = ring_kernel(job.rank(1).device());
    ASSERT_EQ(kernel.launch({}, ringing, there.device(), 1), Status::ok);
    if (seen_by == SeenBy::host) {
      EXPECT_EQ(job.outcome(bell.when(1)).status, Status::ok);
      EXPECT_EQ(there.ring(2), Status::ok);
      EXPECT_EQ(job.outcome(bell.when(2)).status, Status::ok);
      EXPECT_EQ(there.ring(1), Status::ok) << "has been told";
      EXPECT_EQ(bell.epoch(), 2u) << "epochs only grow";
    } else {
      Stream waiting = job.rank(0).device().create_stream();
      ASSERT_EQ(bell.enqueue_wait(waiting, 1), Status::ok);
      EXPECT_EQ(waiting.synchronize(), Status::ok);
      EXPECT_EQ(there.ring(2), Status::not_supported);
    }
    EXPECT_EQ(ringing.synchronize(), Status::ok);
  }
}

TEST(BellsOfPeers, a_ticket_that_is_damaged_is_refused) {
  InProcessJob job(with_devices(2));
  Notifier owner(job.rank(0), {.bells = 16, .others = 8});
  Bell bell = owner.make({.rung_by = RungBy::peer, .seen_by = SeenBy::host, .peer = Rank{1}});
  const BellTicket ticket = bell.ticket();
  std::vector<std::byte> bytes(ticket.bytes().begin(), ticket.bytes().end());
  bytes[40] ^= std::byte{1};
  EXPECT_THROW(PeerBell(job.rank(1), Rank{0}, BellTicket(bytes)), Error);
  EXPECT_THROW(PeerBell(job.rank(1), Rank{0}, BellTicket()), Error);
  EXPECT_THROW(PeerBell(job.rank(1), Rank{1}, ticket), Error);
}

TEST(BellsWithoutDevice, are_refused) {
  InProcessJob job(ranks(1));
  EXPECT_THROW(Notifier(job.rank(0)), Error);
}

}  // namespace
}  // namespace brant::test
