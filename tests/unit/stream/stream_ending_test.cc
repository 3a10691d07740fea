// How two ends of a stream channel meet and part: in any order, again and again, and with a peer that dies; and what is
// refused. No memory stays behind.

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/device.h"
#include "core/engine.h"
#include "ops/stream/table.h"
#include "support/effort.h"
#include "support/faulty_device.h"
#include "unit/stream/stream_pair.h"

namespace brant {
namespace {

using test::End;
using test::InProcessJob;
using test::JobOptions;
using test::kStreamId;
using test::Pair;
using test::with_devices;

constexpr auto kShort = std::chrono::milliseconds(50);

StreamTable& table_of(Runtime& runtime) { return runtime.worker().engine().service<StreamTable>(); }

StreamChannel open(InProcessJob& job, int rank, int peer,
                   std::chrono::nanoseconds patience = std::chrono::seconds(20)) {
  return StreamChannel::open(job.rank(rank), Rank{peer}, kStreamId, {.patience = patience});
}

/// What is deferred is done: no kernel waits for anybody here.
void settle(InProcessJob& job, int ranks = 2) {
  for (int round = 0; round < 4; ++round) {
    job.run(20);
    for (int rank = 0; rank < ranks; ++rank) job.rank(rank).tidy();
  }
}

/// A job whose devices count what they have allocated.
struct CountedJob {
  CountedJob() : job(options(faults)) {
    for (int rank : {0, 1}) table_of(job.rank(rank));  // who never opened any hears of none
  }
  static JobOptions options(std::array<test::DeviceFaults, 2>& faults) {
    JobOptions options = with_devices();
    options.wrap_device = [&](int rank, std::unique_ptr<port::Device> device) {
      return test::make_faulty(std::move(device), faults[static_cast<std::size_t>(rank)]);
    };
    return options;
  }
  [[nodiscard]] bool nothing_is_left() {
    return faults[0].allocated == 0 && faults[1].allocated == 0 && faults[0].imported == faults[0].closed &&
           faults[1].imported == faults[1].closed && table_of(job.rank(0)).closed_ends() == 0 &&
           table_of(job.rank(1)).closed_ends() == 0;
  }

  std::array<test::DeviceFaults, 2> faults;
  InProcessJob job;
};

void meet(InProcessJob& job, StreamChannel& left, StreamChannel& right) {
  Operation first = left.prepare(), second = right.prepare();
  EXPECT_EQ(job.outcome(first).status, Status::ok);
  EXPECT_EQ(job.outcome(second).status, Status::ok);
}

// Meeting
// -------------------------------------------------------------------------------------------------------------------

TEST(StreamMeeting, an_end_whose_other_end_does_not_come_is_told_when_its_patience_is_over_and_may_ask_again) {
  InProcessJob job(with_devices());
  StreamChannel left = open(job, 0, 1, kShort);
  testing::internal::CaptureStderr();
  {
    Operation early = left.prepare();
    EXPECT_EQ(left.state(), Status::in_progress);
    EXPECT_EQ(job.outcome(early).status, Status::timed_out);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("stream channel 7 to rank 1: the other end was not prepared within 0.1 s"), std::string::npos)
      << log;
  StreamChannel right = open(job, 1, 0);
  Operation there = right.prepare();
  EXPECT_TRUE(job.outcome(there).status == Status::ok);
  Operation again = left.prepare();
  EXPECT_EQ(job.outcome(again).status, Status::ok);
  EXPECT_EQ(left.state(), Status::ok);
}

TEST(StreamMeeting, the_wait_for_the_other_end_can_be_cancelled_and_begun_again) {
  InProcessJob job(with_devices());
  StreamChannel left = open(job, 0, 1), right = open(job, 1, 0);
  Operation first = left.prepare();
  testing::internal::CaptureStderr();
  Operation beside = left.prepare();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("before an earlier one has ended"), std::string::npos);
  EXPECT_EQ(beside.result().status, Status::invalid_argument);
  first.op().cancel();
  EXPECT_EQ(job.outcome(first).status, Status::canceled);
  {
    Operation forgotten = left.prepare();
    EXPECT_FALSE(forgotten.done());
  }
  meet(job, left, right);
  Operation once_more = left.prepare();
  EXPECT_TRUE(once_more.done());
  EXPECT_EQ(once_more.result().status, Status::ok);
}

TEST(StreamMeeting, an_end_that_waits_meets_a_later_opening_of_the_other) {
  InProcessJob job(with_devices());
  StreamChannel left = open(job, 0, 1);
  StreamChannel right = open(job, 1, 0);
  Operation first = right.prepare();
  Operation waiting = left.prepare();
  std::vector<std::unique_ptr<Operation>> later;
  for (unsigned opening = 0; opening < 3; ++opening) {
    right.close();  // before it has heard of the left one
    for (int round = 0; round < 20; ++round) job.rank(0).worker().progress();
    EXPECT_FALSE(waiting.done());
    right = open(job, 1, 0);
    if (opening < 2) {
      later.push_back(
          std::make_unique<Operation>(Moment::delivered, [&](Op& op) noexcept { return right.post_prepare(op); }));
    }
  }
  Operation there = right.prepare();
  EXPECT_EQ(job.outcome(there).status, Status::ok);
  EXPECT_EQ(job.outcome(waiting).status, Status::ok);
}

/// The second opening must not be taken for the first, nor hear what is said of that.
TEST(StreamMeeting, an_end_that_was_opened_anew_does_not_meet_the_old_opening_of_the_other) {
  InProcessJob job(with_devices());
  StreamChannel left = open(job, 0, 1), right = open(job, 1, 0);
  meet(job, left, right);
  left.close();
  left = open(job, 0, 1);
  Operation waiting = left.prepare();
  job.run(50);
  EXPECT_FALSE(waiting.done());
  Memory memory = job.rank(1).allocate(MemoryKind::emulated, 8);
  const Stream stream = job.rank(1).device().create_stream();
  EXPECT_EQ(right.send(memory, {.stream = stream}), Status::canceled) << "its other end is closed";
  right.close();
  job.run(50);
  EXPECT_FALSE(waiting.done()) << "what closes is not the end that it waits for";
  right = open(job, 1, 0);
  Operation there = right.prepare();
  EXPECT_EQ(job.outcome(there).status, Status::ok);
  EXPECT_EQ(job.outcome(waiting).status, Status::ok);
}

TEST(StreamMeeting, what_was_said_to_an_earlier_opening_counts_for_nothing_in_the_next) {
  InProcessJob job(with_devices());
  StreamChannel left = open(job, 0, 1), right = open(job, 1, 0);
  const auto run = [&](int rank) {
    for (int round = 0; round < 20; ++round) job.rank(rank).worker().progress();
  };
  Operation first = left.prepare();
  run(1);
  Operation there = right.prepare();  // and says that it has mapped the first opening
  left.close();
  left = open(job, 0, 1);
  Operation second = left.prepare();
  run(0);
  EXPECT_FALSE(second.done());
  EXPECT_EQ(job.outcome(second).status, Status::ok);
  EXPECT_EQ(job.outcome(there).status, Status::ok);
}

TEST(StreamMeeting, an_end_that_waits_does_not_keep_the_memory_of_an_opening_that_is_closed) {
  CountedJob counted;
  InProcessJob& job = counted.job;
  StreamChannel left = open(job, 0, 1), right = open(job, 1, 0);
  Operation there = right.prepare();
  Operation waiting = left.prepare();
  right.close();
  settle(job);
  EXPECT_FALSE(waiting.done());
  EXPECT_EQ(counted.faults[1].allocated, 0u);
  EXPECT_EQ(table_of(job.rank(1)).closed_ends(), 0u);
}

TEST(StreamMeeting, one_id_serves_with_each_peer_at_the_same_time) {
  JobOptions options = with_devices();
  options.ranks = 3;
  InProcessJob job(options);
  StreamChannel to_first = open(job, 0, 1), to_second = open(job, 0, 2);
  StreamChannel first = open(job, 1, 0), second = open(job, 2, 0);
  meet(job, to_first, first);
  meet(job, to_second, second);
  first.close();
  job.run(50);
  EXPECT_EQ(to_second.state(), Status::ok);
  const Stream stream = job.rank(0).device().create_stream();
  Memory memory = job.rank(0).allocate(MemoryKind::emulated, 8);
  EXPECT_EQ(to_first.send(memory, {.stream = stream}), Status::canceled);
  Operation sent(Moment::source_free,
                 [&](Op& op) noexcept { return to_second.send(memory, {.stream = stream, .op = &op}); });
  EXPECT_EQ(job.outcome(sent).status, Status::ok);
}

TEST(StreamMeeting, an_end_that_moves_stays_what_it_was) {
  InProcessJob job(with_devices());
  StreamChannel left = open(job, 0, 1), right = open(job, 1, 0);
  meet(job, left, right);
  StreamChannel moved = std::move(left);
  EXPECT_FALSE(left.is_open());
  EXPECT_EQ(left.state(), Status::invalid_argument);
  EXPECT_EQ(moved.state(), Status::ok);
  EXPECT_EQ(moved.peer(), Rank{1});
  EXPECT_EQ(moved.id(), kStreamId);
  moved = StreamChannel();
  EXPECT_EQ(table_of(job.rank(0)).open_ends(), 0u);
}

/// Whatever the two do and however far word of it has come: each wait ends, in the end they meet, and nothing stays.
TEST(StreamMeeting, two_ends_that_open_and_close_at_random_always_meet_and_leave_nothing) {
  std::mt19937 random(20261124);
  for (unsigned life = 0; life < test::effort(60u, 10u); ++life) {
    SCOPED_TRACE(life);
    CountedJob counted;
    InProcessJob& job = counted.job;
    std::array<StreamChannel, 2> ends;
    std::array<std::optional<Operation>, 2> waits;
    for (unsigned step = 0; step < 30; ++step) {
      const unsigned rank = random() % 2;
      switch (random() % 4) {
        case 0:
          if (!ends[rank].is_open()) ends[rank] = open(job, static_cast<int>(rank), static_cast<int>(1 - rank));
          break;
        case 1:
          if (ends[rank].is_open() && !waits[rank]) {
            waits[rank].emplace(Moment::delivered, [&](Op& op) noexcept { return ends[rank].post_prepare(op); });
          }
          break;
        case 2:
          ends[rank].close();
          if (waits[rank]) {
            EXPECT_NE(job.outcome(*waits[rank]).status, Status::timed_out);
          }
          waits[rank].reset();
          break;
        default:
          for (unsigned round = random() % 4; round > 0; --round) job.rank(static_cast<int>(rank)).worker().progress();
      }
    }
    for (unsigned rank : {0u, 1u}) {
      waits[rank].reset();
      ends[rank].close();
    }
    for (unsigned rank : {0u, 1u}) ends[rank] = open(job, static_cast<int>(rank), static_cast<int>(1 - rank));
    meet(job, ends[0], ends[1]);
    for (StreamChannel& end : ends) end.close();
    settle(job);
    ASSERT_TRUE(counted.nothing_is_left());
  }
}

// Parting
// -------------------------------------------------------------------------------------------------------------------

TEST(StreamParting, memory_comes_back_once_both_ends_are_closed_in_either_order) {
  for (const bool left_first : {true, false}) {
    CountedJob counted;
    InProcessJob& job = counted.job;
    StreamChannel left = open(job, 0, 1), right = open(job, 1, 0);
    meet(job, left, right);
    EXPECT_EQ(counted.faults[0].allocated, 2u) << "a mailbox, and what it shares with the CPU";
    StreamChannel& first = left_first ? left : right;
    first.close();
    settle(job);
    EXPECT_EQ(counted.faults[left_first ? 0 : 1].allocated, 2u) << "kernels of the other end may still write there";
    (left_first ? right : left).close();
    settle(job);
    EXPECT_TRUE(counted.nothing_is_left());
  }
}

TEST(StreamParting, memory_comes_back_from_an_end_that_never_met_another) {
  CountedJob counted;
  InProcessJob& job = counted.job;
  StreamChannel left = open(job, 0, 1);
  {
    Operation waiting = left.prepare();
  }
  job.run(20);
  left.close();
  EXPECT_EQ(counted.faults[0].allocated, 2u) << "not freed where it is closed";
  settle(job);
  EXPECT_TRUE(counted.nothing_is_left());
}

TEST(StreamParting, memory_comes_back_without_being_asked_for_while_the_program_waits) {
  CountedJob counted;
  InProcessJob& job = counted.job;
  StreamChannel left = open(job, 0, 1), right = open(job, 1, 0);
  meet(job, left, right);
  left.close();
  right.close();
  EXPECT_TRUE(job.run_until([&] {
    for (int rank : {0, 1}) static_cast<void>(job.rank(rank).worker().wait_until([] { return false; }, kShort));
    return counted.nothing_is_left();
  }));
}

TEST(StreamParting, a_transfer_that_stands_behind_other_work_outlives_its_channel) {
  CountedJob counted;
  InProcessJob& job = counted.job;
  StreamChannel left = open(job, 0, 1), right = open(job, 1, 0);
  meet(job, left, right);
  {
    port::Streams& streams = *job.rank(0).device().inner().streams();
    port::Stream* stream = streams.create_stream(port::StreamPriority::normal).value();
    Memory gate = job.rank(0).allocate(MemoryKind::pinned, 8), memory = job.rank(0).allocate(MemoryKind::emulated, 8);
    auto* word = static_cast<std::uint64_t*>(gate.data());
    std::atomic_ref<std::uint64_t>(*word).store(0);
    ASSERT_EQ(streams.wait_value(port::StreamWord::Act::wait_equal, word, 1, stream), Status::ok);
    Operation sent(Moment::source_free,
                   [&](Op& op) noexcept { return left.send(memory, {.stream = stream, .op = &op}); });
    left.close();
    right.close();
    job.run(50);
    EXPECT_FALSE(sent.done());
    for (int rank : {0, 1}) job.rank(rank).tidy();  // which waits for no transfer that somebody is to hear of
    EXPECT_EQ(table_of(job.rank(0)).closed_ends(), 1u);
    std::atomic_ref<std::uint64_t>(*word).store(1);
    EXPECT_TRUE(job.outcome(sent).status == Status::ok || sent.result().status == Status::canceled);
    streams.destroy_stream(stream);
  }
  settle(job);
  EXPECT_TRUE(counted.nothing_is_left());
}

TEST(StreamParting, a_kernel_that_waits_gives_up_when_its_own_end_is_closed) {
  Pair pair;
  Memory landing = pair.right.device(100);
  Operation never = pair.right.observed_recv(landing);
  pair.job.run(20);
  EXPECT_FALSE(never.done());
  pair.right.channel.close();
  EXPECT_EQ(pair.outcome(never).status, Status::canceled);
}

TEST(StreamParting, a_kernel_that_waits_gives_up_when_the_peer_is_lost_and_memory_comes_back) {
  CountedJob counted;
  InProcessJob& job = counted.job;
  {
    End left(job.rank(0), Rank{1}), right(job.rank(1), Rank{0});
    meet(job, left.channel, right.channel);
    Memory landing = left.device(100);
    Operation never = left.observed_recv(landing);
    job.run(20);
    EXPECT_FALSE(never.done());
    Engine& engine = job.rank(0).worker().engine();
    engine.peers().suspect(*engine.peers().find(1));
    EXPECT_EQ(job.outcome(never).status, Status::peer_lost);
    EXPECT_EQ(left.channel.state(), Status::peer_lost);
    EXPECT_EQ(left.recv(landing), Status::peer_lost);
    EXPECT_THROW(open(job, 0, 1), Error);
  }
  for (int round = 0; round < 4; ++round) {
    job.run(20);
    job.rank(0).tidy();
  }
  EXPECT_EQ(counted.faults[0].allocated, 0u);
  EXPECT_EQ(counted.faults[0].imported, counted.faults[0].closed);
}

TEST(StreamParting, an_end_that_waits_for_a_program_that_ends_is_told) {
  InProcessJob job(with_devices());
  StreamChannel left = open(job, 0, 1);
  Operation waiting = left.prepare();
  job.run(20);
  job.rank(1).worker().engine().shut_down();
  EXPECT_EQ(job.outcome(waiting).status, Status::peer_lost);
}

TEST(StreamParting, an_end_that_waits_for_long_says_what_for) {
  JobOptions options = with_devices();
  options.runtime.stall_report = std::chrono::milliseconds(30);
  InProcessJob job(options);
  StreamChannel left = open(job, 0, 1, std::chrono::hours(1));
  Operation waiting = left.prepare();
  testing::internal::CaptureStderr();
  static_cast<void>(job.rank(0).worker().wait_until([&] { return waiting.done(); }, std::chrono::milliseconds(300)));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("stream channel 7: rank 0 has prepared it, and waits for rank 1 to do so"), std::string::npos)
      << log;
}

// What is refused
// -------------------------------------------------------------------------------------------------------------------

Status status_of_open(Runtime& runtime, Rank peer, ChannelId id, const StreamChannelOptions& options = {}) {
  try {
    StreamChannel::open(runtime, peer, id, options);
  } catch (const Error& error) {
    return error.status();
  }
  return Status::ok;
}

TEST(StreamRefused, what_cannot_be_opened) {
  InProcessJob job(with_devices());
  EXPECT_EQ(status_of_open(job.rank(0), Rank{1}, ChannelId{kChannelIdMax + 1}), Status::invalid_argument);
  EXPECT_EQ(status_of_open(job.rank(0), Rank{2}, kStreamId), Status::invalid_argument);
  EXPECT_EQ(status_of_open(job.rank(0), Rank{1}, kStreamId, {.patience = std::chrono::nanoseconds(0)}),
            Status::invalid_argument);
  StreamChannel left = open(job, 0, 1);
  EXPECT_EQ(status_of_open(job.rank(0), Rank{1}, kStreamId), Status::invalid_argument);
  left.close();
  EXPECT_EQ(status_of_open(job.rank(0), Rank{1}, kStreamId), Status::ok);
}

TEST(StreamRefused, both_ends_in_one_process) {
  InProcessJob job(with_devices());
  StreamChannel one = open(job, 0, 0), other = open(job, 0, 0);
  EXPECT_EQ(status_of_open(job.rank(0), Rank{0}, kStreamId), Status::invalid_argument) << "there are two";
  for (StreamChannel* end : {&one, &other}) {
    Operation prepared = end->prepare();
    ASSERT_TRUE(prepared.done());
    EXPECT_EQ(prepared.result().status, Status::not_supported);
    EXPECT_EQ(end->state(), Status::not_supported) << "and so from then on";
  }
}

TEST(StreamRefused, an_end_without_memory_for_its_mailbox_refuses_the_other_whoever_comes_first) {
  for (const bool left_first : {true, false}) {
    CountedJob counted;
    InProcessJob& job = counted.job;
    counted.faults[0].pinned = Status::no_memory;
    StreamChannel left = open(job, 0, 1), right = open(job, 1, 0);
    std::optional<Operation> there;
    const auto ask_there = [&] {
      there.emplace(Moment::delivered, [&](Op& op) noexcept { return right.post_prepare(op); });
      job.run(20);
    };
    if (!left_first) ask_there();
    Operation here = left.prepare();
    EXPECT_EQ(here.result().status, Status::no_memory);
    if (left_first) ask_there();
    EXPECT_EQ(job.outcome(*there).status, Status::not_supported);
    left.close();
    right.close();
    settle(job);
    EXPECT_TRUE(counted.nothing_is_left());
  }
}

TEST(StreamRefused, more_closed_ends_than_may_keep_their_memory) {
  CountedJob counted;
  InProcessJob& job = counted.job;
  for (unsigned i = 0; i < StreamTable::kClosedMax; ++i) {
    StreamChannel left = open(job, 0, 1);
    Operation waiting = left.prepare();
    ASSERT_FALSE(waiting.done()) << i;
  }
  StreamChannel left = open(job, 0, 1);
  testing::internal::CaptureStderr();
  {
    Operation refused = left.prepare();
    EXPECT_EQ(refused.result().status, Status::limit_reached);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("256 closed stream channels of this process still hold device memory"), std::string::npos) << log;
  left.close();
  settle(job);
  EXPECT_TRUE(counted.nothing_is_left());
}

TEST(StreamRefused, more_notices_than_there_may_be_until_some_have_ended) {
  Pair pair;
  Memory landing = pair.right.device(8), source = pair.left.device(8);
  std::vector<std::unique_ptr<Operation>> receives;
  for (unsigned i = 0; i < 64; ++i) {
    receives.push_back(std::make_unique<Operation>(Moment::delivered, [&](Op& op) noexcept {
      return pair.right.channel.recv(landing, {.stream = pair.right.stream, .op = &op});
    }));
    ASSERT_FALSE(receives.back()->done());
  }
  {
    Operation refused = pair.right.observed_recv(landing);
    EXPECT_EQ(refused.result().status, Status::limit_reached);
  }
  EXPECT_EQ(pair.left.send(source), Status::ok);
  EXPECT_TRUE(pair.outcome(*receives.front()).ok());
  Operation accepted = pair.right.observed_recv(landing);
  EXPECT_FALSE(accepted.done());
  EXPECT_EQ(pair.right.channel.state(), Status::ok) << "the bound ends nothing";
}

TEST(StreamRefused, more_receives_begun_than_there_may_be) {
  Pair pair;
  Memory landing = pair.right.device(8);
  for (unsigned i = 0; i < 65; ++i) {
    EXPECT_EQ(pair.right.channel.recv_start(landing, {.stream = pair.right.stream}), Status::ok) << i;
  }
  EXPECT_EQ(pair.right.runtime.device().inner().streams()->synchronize(pair.right.stream), Status::ok);
  EXPECT_EQ(pair.right.channel.state(), Status::limit_reached);
  EXPECT_EQ(pair.right.recv(landing), Status::limit_reached);
}

TEST(StreamRefused, landings_in_more_allocations_than_there_may_be) {
  Pair pair;
  std::vector<Memory> landings;
  testing::internal::CaptureStderr();
  for (unsigned i = 0; i < 65; ++i) {
    landings.push_back(pair.right.device(8));
    const Status begun = pair.right.channel.recv_start(landings.back(), {.stream = pair.right.stream});
    EXPECT_EQ(begun, i < 64 ? Status::ok : Status::limit_reached) << i;
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("in more than 64 allocations"), std::string::npos) << log;
  EXPECT_EQ(pair.right.channel.state(), Status::ok) << "the bound ends nothing";
}

}  // namespace
}  // namespace brant
