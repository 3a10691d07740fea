// Transfers that streams trigger, on emulated devices: the kernels run on the streams' threads, side by side.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "ops/stream/mailbox.h"
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
using test::pattern;
using test::with_devices;

constexpr std::size_t kEager = StreamMailbox::kEagerBytes;
constexpr std::size_t kLarge = 1'000'000;

TEST(StreamChannel, messages_of_all_sizes_land_without_the_host_whichever_side_comes_first) {
  Pair pair;
  ASSERT_EQ(pair.prepared, std::pair(Status::ok, Status::ok));
  unsigned seed = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{4097}, kEager, kEager + 1, kLarge}) {
    for (const bool send_first : {true, false}) {
      const auto sent = pattern(bytes, ++seed);
      Memory source = pair.left.device(sent);
      Memory landing = pair.right.device(bytes);
      if (send_first) {
        EXPECT_EQ(pair.left.send(source.part(0, bytes)), Status::ok);
      }
      Operation received = pair.right.observed_recv(landing.part(0, bytes));
      if (!send_first) {
        pair.job.run(20);
        EXPECT_FALSE(received.done());
        EXPECT_EQ(pair.left.send(source.part(0, bytes)), Status::ok);
      }
      const OpResult result = pair.outcome(received);
      EXPECT_TRUE(result.ok());
      EXPECT_EQ(result.bytes, bytes);
      EXPECT_EQ(pair.right.bytes_of(landing, bytes), sent) << bytes << (send_first ? " sent first" : " received first");
    }
  }
  EXPECT_EQ(pair.left.runtime.path_use().messages[static_cast<std::size_t>(Path::kernel)], 12u);
}

TEST(StreamChannel, a_transfer_waits_for_the_work_before_it_and_the_work_behind_waits_for_it) {
  Pair pair;
  port::Streams& streams = *pair.left.runtime.device().inner().streams();
  Memory source = pair.left.device(kLarge);
  Memory landing = pair.right.device(kLarge);
  Memory copy = pair.right.device(kLarge);
  for (const unsigned value : {7u, 9u}) {
    EXPECT_EQ(streams.fill(source.data(), static_cast<std::byte>(value), kLarge, pair.left.stream), Status::ok);
    EXPECT_EQ(pair.left.send(source), Status::ok);
    EXPECT_EQ(streams.fill(source.data(), std::byte{0}, kLarge, pair.left.stream), Status::ok);
    EXPECT_EQ(pair.right.recv(landing), Status::ok);
    port::Streams& there = *pair.right.runtime.device().inner().streams();
    EXPECT_EQ(there.copy(copy.data(), landing.data(), kLarge, pair.right.stream), Status::ok);
    Operation end = pair.right.observed_send(landing.part(0, 8));  // behind the copy
    EXPECT_TRUE(pair.outcome(end).ok());
    Memory back = pair.left.device(8);
    Operation got = pair.left.observed_recv(back);
    EXPECT_TRUE(pair.outcome(got).ok());
    EXPECT_EQ(pair.right.bytes_of(copy, kLarge), std::vector<std::byte>(kLarge, static_cast<std::byte>(value)));
  }
}

TEST(StreamChannel, two_ends_that_begin_their_receives_exchange_large_messages_on_one_stream_each) {
  Pair pair;
  const auto from_left = pattern(kLarge, 1), from_right = pattern(kLarge, 2);
  Memory sources[] = {pair.left.device(from_left), pair.right.device(from_right)};
  Memory landings[] = {pair.left.device(kLarge), pair.right.device(kLarge)};
  End* ends[] = {&pair.left, &pair.right};
  for (int i = 0; i < 2; ++i) {
    End& end = *ends[i];
    EXPECT_EQ(end.channel.recv_start(landings[i], {.stream = end.stream}), Status::ok);
    EXPECT_EQ(end.send(sources[i]), Status::ok);
  }
  for (int i = 0; i < 2; ++i) {
    End& end = *ends[i];
    Operation finished(Moment::delivered,
                       [&](Op& op) noexcept { return end.channel.recv_finish({.stream = end.stream, .op = &op}); });
    EXPECT_TRUE(pair.outcome(finished).ok());
    EXPECT_EQ(end.bytes_of(landings[i], kLarge), i == 0 ? from_right : from_left);
  }
}

TEST(StreamChannel, small_messages_leave_before_their_receives_as_far_as_there_is_room) {
  Pair pair;
  constexpr unsigned count = StreamMailbox::kEagerSlots + 3;
  std::vector<std::unique_ptr<Operation>> sends;
  std::vector<Memory> sources;
  for (unsigned i = 0; i < count; ++i) {
    sources.push_back(pair.left.device(pattern(kEager, i)));
    sends.push_back(std::make_unique<Operation>(Moment::source_free, [&](Op& op) noexcept {
      return pair.left.channel.send(sources.back(), {.stream = pair.left.stream, .op = &op});
    }));
  }
  for (unsigned i = 0; i < StreamMailbox::kEagerSlots; ++i) EXPECT_TRUE(pair.outcome(*sends[i]).ok());
  pair.job.run(2000);
  EXPECT_FALSE(sends[StreamMailbox::kEagerSlots]->done()) << "the other end keeps no more than its memory holds";
  for (unsigned i = 0; i < count; ++i) {
    Memory landing = pair.right.device(kEager);
    Operation received = pair.right.observed_recv(landing);
    EXPECT_TRUE(pair.outcome(received).ok());
    EXPECT_EQ(pair.right.bytes_of(landing, kEager), pattern(kEager, i));
  }
  for (const auto& send : sends) EXPECT_TRUE(pair.outcome(*send).ok());
}

TEST(StreamChannel, many_messages_keep_their_order_and_none_is_lost) {
  Pair pair;
  constexpr unsigned count = 500;
  const std::size_t each = 12'000;  // some larger than what leaves by itself, some smaller
  Memory source = pair.left.device(pattern(each * 8, 3));
  Memory landing = pair.right.device(each * 8);
  const auto bytes_of_turn = [](unsigned i) { return std::size_t{1} + i * 7919 % 12'000; };
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t bytes = bytes_of_turn(i);
    ASSERT_EQ(pair.right.recv(landing.part(i % 8 * each, bytes)), Status::ok);
    ASSERT_EQ(pair.left.send(source.part(i % 8 * each, bytes)), Status::ok);
    pair.job.run(1);
  }
  Memory end = pair.right.device(8);
  Operation last = pair.right.observed_recv(end);
  EXPECT_EQ(pair.left.send(source.part(0, 8)), Status::ok);
  EXPECT_TRUE(pair.outcome(last).ok());
  const auto expected = pattern(each * 8, 3);
  const auto landed = pair.right.bytes_of(landing, each * 8);
  for (unsigned i = count - 8; i < count; ++i) {
    const auto first = static_cast<std::ptrdiff_t>(i % 8 * each);
    EXPECT_TRUE(std::equal(landed.begin() + first,
                           landed.begin() + first + static_cast<std::ptrdiff_t>(bytes_of_turn(i)),
                           expected.begin() + first))
        << i;
  }
}

TEST(StreamChannel, a_captured_exchange_can_be_replayed) {
  Pair pair;
  Memory sources[] = {pair.left.device(kLarge), pair.right.device(kLarge)};
  Memory landings[] = {pair.left.device(kLarge), pair.right.device(kLarge)};
  End* ends[] = {&pair.left, &pair.right};
  port::Graph* graphs[2];
  for (int i = 0; i < 2; ++i) {
    End& end = *ends[i];
    port::Streams& streams = *end.runtime.device().inner().streams();
    ASSERT_EQ(streams.begin_capture(end.stream), Status::ok);
    EXPECT_EQ(end.channel.recv_start(landings[i], {.stream = end.stream}), Status::ok);
    EXPECT_EQ(end.send(sources[i]), Status::ok);
    EXPECT_EQ(end.channel.recv_finish({.stream = end.stream}), Status::ok);
    EXPECT_EQ(end.send(sources[i].part(0, 100)), Status::ok);
    EXPECT_EQ(end.recv(landings[i].part(0, 100)), Status::ok);
    graphs[i] = streams.end_capture(end.stream).value();
  }
  for (unsigned round = 0; round < test::effort(100u, 34u); ++round) {
    // The sources are changed: what reads them must have ended.
    for (End* end : ends) {
      if (round % 33 != 0) break;
      ASSERT_EQ(end->runtime.device().inner().streams()->synchronize(end->stream), Status::ok);
    }
    for (int i = 0; i < 2; ++i) {
      const auto sent = pattern(kLarge, round + static_cast<unsigned>(i));
      if (round % 33 == 0) ends[i]->runtime.copy(sources[i], std::span(sent));
      ASSERT_EQ(ends[i]->runtime.device().inner().streams()->launch(graphs[i], ends[i]->stream), Status::ok);
    }
    pair.job.run(1);  // where the landings lie is told once
    if (round % 33 != 0) continue;
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(ends[i]->runtime.device().inner().streams()->synchronize(ends[i]->stream), Status::ok);
      EXPECT_EQ(ends[i]->bytes_of(landings[i], kLarge), pattern(kLarge, round + 1 - static_cast<unsigned>(i)));
    }
  }
  for (int i = 0; i < 2; ++i) {
    port::Streams& streams = *ends[i]->runtime.device().inner().streams();
    EXPECT_EQ(streams.synchronize(ends[i]->stream), Status::ok);
    streams.destroy_graph(graphs[i]);
  }
}

TEST(StreamChannel, pinned_memory_can_be_sent_and_host_memory_is_refused) {
  Pair pair;
  Memory pinned = pair.left.runtime.allocate(MemoryKind::pinned, 100);
  std::memset(pinned.data(), 5, 100);
  Memory landing = pair.right.device(100);
  EXPECT_EQ(pair.left.send(pinned), Status::ok);
  Operation received = pair.right.observed_recv(landing);
  EXPECT_TRUE(pair.outcome(received).ok());
  EXPECT_EQ(pair.right.bytes_of(landing, 100), std::vector<std::byte>(100, std::byte{5}));
  std::vector<std::byte> host(100);
  EXPECT_EQ(pair.left.send(std::span(host)), Status::wrong_kind);
  EXPECT_EQ(pair.right.recv(std::span(host)), Status::wrong_kind);
}

TEST(StreamChannel, a_message_longer_than_its_receive_is_told_and_does_not_disturb_the_next) {
  for (const std::size_t bytes : {std::size_t{100}, kLarge}) {
    Pair pair;
    Memory source = pair.left.device(pattern(bytes, 1));
    Memory landing = pair.right.device(bytes);
    EXPECT_EQ(pair.left.send(source), Status::ok);
    Operation first = pair.right.observed_recv(landing.part(0, bytes - 1));
    const OpResult result = pair.outcome(first);
    EXPECT_EQ(result.status, Status::truncated);
    EXPECT_EQ(result.bytes, bytes);
    EXPECT_EQ(pair.left.send(source), Status::ok);
    Operation second = pair.right.observed_recv(landing);
    EXPECT_TRUE(pair.outcome(second).ok());
    EXPECT_EQ(pair.right.bytes_of(landing, bytes), pattern(bytes, 1));
  }
}

TEST(StreamChannel, a_receive_that_is_finished_without_having_begun_is_an_error_not_a_wait) {
  Pair pair;
  Operation finished(Moment::delivered, [&](Op& op) noexcept {
    return pair.right.channel.recv_finish({.stream = pair.right.stream, .op = &op});
  });
  EXPECT_EQ(pair.outcome(finished).status, Status::invalid_argument);
}

TEST(StreamChannel, a_wait_ends_when_the_other_end_closes_but_what_has_come_can_be_received) {
  Pair pair;
  Memory source = pair.left.device(pattern(100, 1));
  Operation sent = pair.left.observed_send(source);
  EXPECT_TRUE(pair.outcome(sent).ok());
  pair.left.channel.close();
  pair.job.run(100);
  Memory landing = pair.right.device(100);
  Operation received = pair.right.observed_recv(landing);
  EXPECT_TRUE(pair.outcome(received).ok());
  Operation never = pair.right.observed_recv(landing);
  EXPECT_EQ(pair.outcome(never).status, Status::canceled);
  EXPECT_EQ(pair.right.recv(landing), Status::canceled) << "and so from then on";
}

TEST(StreamChannel, a_wait_ends_when_patience_does) {
  Pair pair(with_devices(), std::chrono::milliseconds(50));
  Memory landing = pair.right.device(100);
  Operation never = pair.right.observed_recv(landing);
  EXPECT_EQ(pair.outcome(never).status, Status::timed_out);
  EXPECT_EQ(pair.right.recv(landing), Status::timed_out);
}

/// The driver frees memory once all kernels of the device have ended, and the program makes no progress meanwhile.
TEST(StreamChannel, a_free_beside_a_transfer_that_waits_ends_with_its_patience_at_the_latest) {
  test::DeviceFaults faults[2];
  port::Device* devices[2] = {};
  JobOptions options = with_devices();
  options.wrap_device = [&](int rank, std::unique_ptr<port::Device> device) {
    devices[rank] = device.get();
    return test::make_faulty(std::move(device), faults[rank]);
  };
  Pair pair(options, std::chrono::milliseconds(50));
  Memory landing = pair.right.device(100);
  Memory other = pair.right.device(100);
  Operation never = pair.right.observed_recv(landing);
  faults[1].at_free = [&] { EXPECT_EQ(devices[1]->streams()->synchronize_all(), Status::ok); };
  other = Memory();
  faults[1].at_free = {};
  EXPECT_EQ(pair.outcome(never).status, Status::timed_out);
}

TEST(StreamChannel, closed_ends_can_be_opened_and_prepared_again) {
  Pair pair;
  for (unsigned round = 0; round < 3; ++round) {
    Memory source = pair.left.device(pattern(kLarge, round));
    Memory landing = pair.right.device(kLarge);
    Operation received = pair.right.observed_recv(landing);
    EXPECT_EQ(pair.left.send(source), Status::ok);
    EXPECT_TRUE(pair.outcome(received).ok());
    EXPECT_EQ(pair.right.bytes_of(landing, kLarge), pattern(kLarge, round));
    pair.left.channel.close();
    pair.right.channel.close();
    pair.job.run(100);
    pair.left.channel = StreamChannel::open(pair.left.runtime, Rank{1}, kStreamId);
    pair.right.channel = StreamChannel::open(pair.right.runtime, Rank{0}, kStreamId);
    Operation first = pair.left.channel.prepare();
    Operation second = pair.right.channel.prepare();
    EXPECT_TRUE(pair.outcome(first).ok());
    EXPECT_TRUE(pair.outcome(second).ok());
  }
}

TEST(StreamChannel, without_preparation_or_a_common_device_it_says_so) {
  JobOptions options = with_devices();
  InProcessJob job(options);
  End end(job.rank(0), Rank{1});
  Memory memory = end.device(8);
  EXPECT_EQ(end.send(memory), Status::invalid_argument);
  EXPECT_EQ(end.channel.send(memory, {.stream = nullptr}), Status::invalid_argument);
  options.links = false;
  EXPECT_EQ(Pair(options).prepared, std::pair(Status::not_supported, Status::not_supported));
  options.links = true;
  options.runtime.path = Path::copy_engine;
  EXPECT_EQ(Pair(options).prepared, std::pair(Status::not_supported, Status::not_supported));
  options.runtime.path = Path::kernel;
  EXPECT_EQ(Pair(options).prepared, std::pair(Status::ok, Status::ok));
  options.runtime.path = Path::automatic;
  options.gpu = GpuChoice::none;
  EXPECT_EQ(Pair(options).prepared, std::pair(Status::not_supported, Status::not_supported));
}

TEST(StreamChannel, an_end_that_cannot_map_the_other_refuses_both) {
  JobOptions options = with_devices();
  options.mappable = [](const port::ExportRecord&) { return false; };
  EXPECT_EQ(Pair(options).prepared, std::pair(Status::not_supported, Status::not_supported));
}

/// Landings of this size cannot be mapped; the mailboxes, which have another one, can.
bool all_but_large(const port::ExportRecord& record) { return record.bytes != kLarge; }

TEST(StreamChannel, a_landing_that_cannot_be_mapped_ends_both_sides_and_names_the_allocation) {
  JobOptions options = with_devices();
  options.mappable = all_but_large;
  Pair pair(options);
  ASSERT_EQ(pair.prepared, std::pair(Status::ok, Status::ok));
  Memory source = pair.left.device(pattern(kLarge, 1));
  Memory landing = pair.right.device(kLarge);
  testing::internal::CaptureStderr();
  Operation receive = pair.right.observed_recv(landing);
  Operation send = pair.left.observed_send(source);
  EXPECT_EQ(pair.outcome(receive).status, Status::not_supported);
  EXPECT_EQ(pair.outcome(send).status, Status::not_supported);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("rank 0 cannot map an allocation of " + std::to_string(kLarge) + " bytes"), std::string::npos)
      << log;
  EXPECT_EQ(pair.right.recv(landing), Status::not_supported) << "and so from then on";
  EXPECT_EQ(pair.left.send(source), Status::not_supported);
  // Transfers of the host still go.
  Channel left = Channel::open(pair.left.runtime, Rank{1}, kStreamId),
          right = Channel::open(pair.right.runtime, Rank{0}, kStreamId);
  Operation host_receive = right.recv(landing);
  Operation host_send = left.send(source);
  EXPECT_TRUE(pair.outcome(host_receive).ok());
  EXPECT_TRUE(pair.outcome(host_send).ok());
  EXPECT_EQ(pair.right.bytes_of(landing, kLarge), pattern(kLarge, 1));
}

TEST(StreamChannel, a_landing_that_was_freed_before_it_could_be_mapped_disturbs_nobody) {
  JobOptions options = with_devices();
  options.mappable = all_but_large;
  Pair pair(options);
  Memory source = pair.left.device(pattern(100, 1));
  {
    Memory gone = pair.right.device(kLarge);
    Operation send = pair.left.observed_send(source);  // small: it leaves without its receive
    EXPECT_TRUE(pair.outcome(send).ok());
    EXPECT_EQ(pair.right.recv(gone.part(0, 100)), Status::ok);
    EXPECT_EQ(pair.right.runtime.device().inner().streams()->synchronize(pair.right.stream), Status::ok);
  }
  pair.job.run(100);  // only now the left end hears of the allocation, and the right one that it cannot be mapped
  Memory landing = pair.right.device(100);
  Operation receive = pair.right.observed_recv(landing);
  Operation send = pair.left.observed_send(source);
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_EQ(pair.right.bytes_of(landing, 100), pattern(100, 1));
}

TEST(StreamChannel, a_landing_that_cannot_be_exported_is_refused_at_once) {
  JobOptions options = with_devices();
  options.exportable = [](const port::PointerInfo& info) { return info.bytes != kLarge; };
  Pair pair(options);
  Memory landing = pair.right.device(kLarge);
  EXPECT_EQ(pair.right.recv(landing), Status::not_supported);
  Memory other = pair.right.device(kLarge - 1);
  Memory source = pair.left.device(pattern(kLarge - 1, 1));
  Operation receive = pair.right.observed_recv(other);
  Operation send = pair.left.observed_send(source);
  EXPECT_TRUE(pair.outcome(receive).ok()) << "other memory still serves";
  EXPECT_TRUE(pair.outcome(send).ok());
}

}  // namespace
}  // namespace brant
