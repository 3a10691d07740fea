// What is particular to channels between processes that share memory: what their ends agree upon over the link.

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/sinks.h"
#include "brant/ops/channel.h"
#include "core/engine.h"
#include "ops/channel/delivery_window.h"
#include "ops/channel/link_message.h"
#include "support/environment.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::InProcessJob;
using test::JobOptions;
using test::kLarge;
using test::linked;
using test::MappedPair;
using test::Pair;
using test::pattern;

TEST(LinkedChannel, host_memory_takes_path_shm_where_it_is_faster) {
  JobOptions options = linked();
  options.runtime.path = Path::automatic;
  Pair pair(options);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{5} << 20}) {
    EXPECT_EQ(*pair.left.path_of(MemoryKind::host, bytes), Path::shm) << bytes;
    const std::vector<std::byte> foreign(bytes);
    EXPECT_EQ(*pair.left.path_of(std::span(foreign)), Path::shm) << bytes;
  }
  const std::vector<std::byte> foreign(65536);
  EXPECT_EQ(*pair.left.path_of(std::span(foreign)), Path::ucx) << "nobody can map it";
}

/// A file as a user may write it by hand, gone with the object.
struct CalibrationFile {
  explicit CalibrationFile(const std::string& lines)
      : path(std::filesystem::temp_directory_path() / ("brant-channel-" + std::to_string(::getpid()))) {
    std::ofstream(path) << "brant-calibration 1\n" << lines;
  }
  CalibrationFile(const CalibrationFile&) = delete;
  CalibrationFile& operator=(const CalibrationFile&) = delete;
  ~CalibrationFile() { std::filesystem::remove(path); }
  const std::filesystem::path path;
};

TEST(LinkedChannel, a_calibration_changes_the_path_that_messages_take) {
  const CalibrationFile file(
      "point shm host host 8 50\npoint shm host host 65536 60\npoint ucx host host 8 1\npoint ucx host host 65536 "
      "600\n");
  JobOptions options = linked();
  options.runtime.path = Path::automatic;
  options.runtime.calibration = file.path.string();
  Pair pair(options);
  for (const auto& [bytes, path] : {std::pair{std::size_t{8}, Path::ucx}, std::pair{std::size_t{65536}, Path::shm}}) {
    const Counters& counters = pair.job.rank(0).worker().engine().counters();
    const std::uint64_t before = counters.path(path).sends.read();
    const auto sent = pattern(bytes, 4);
    std::vector<std::byte> landed(bytes);
    Operation receive = pair.right.recv(std::span(landed));
    Operation send = pair.left.send(std::span(sent));
    EXPECT_TRUE(pair.outcome(receive).ok());
    EXPECT_TRUE(pair.outcome(send).ok());
    EXPECT_EQ(landed, sent);
    EXPECT_EQ(counters.path(path).sends.read(), before + 1);
  }
}

TEST(LinkedChannel, a_calibration_that_cannot_be_used_leaves_the_built_in_choice) {
  for (const char* lines : {"point shm\n", "gpu GPU-of-another-machine\npoint ucx host host 8 1\n", "ucx 0.1\n"}) {
    const CalibrationFile file(lines);
    JobOptions options = linked(GpuChoice::emulated);
    options.runtime.path = Path::automatic;
    options.runtime.calibration = file.path.string();
    Pair pair(options);
    EXPECT_EQ(*pair.left.path_of(MemoryKind::host, 8), Path::shm) << lines;
  }
}

TEST(LinkedChannel, a_large_message_waits_at_its_sender_until_its_receive_is_there) {
  Pair pair;
  const auto sent = pattern(kLarge, 1);
  Operation send = pair.left.send(std::span(sent));
  pair.job.run(100);
  EXPECT_FALSE(send.done());
  test::expect_received(pair, send, sent);
}

TEST(LinkedChannel, small_messages_that_come_early_free_their_source_at_once) {
  Pair pair;
  std::vector<std::vector<std::byte>> sent;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, std::size_t{129}, kEagerBytes}) {
    sent.push_back(pattern(bytes, 3));
    std::vector<std::byte> source = sent.back();
    Operation send = pair.left.send(std::span(source));
    EXPECT_TRUE(send.done());
    std::fill(source.begin(), source.end(), std::byte{0xee});
  }
  pair.job.run(20);
  for (const auto& wanted : sent) {
    std::vector<std::byte> landed(kEagerBytes);
    Operation receive = pair.right.recv(std::span(landed));
    ASSERT_TRUE(receive.done()) << "it lies here already";
    EXPECT_EQ(receive.result().bytes, wanted.size());
    landed.resize(wanted.size());
    EXPECT_EQ(landed, wanted);
  }
}

TEST(LinkedChannel, a_long_message_is_truncated_and_both_ends_know_it) {
  Pair pair;
  const auto sent = pattern(kLarge, 1);
  test::expect_truncated_at_both_ends(pair, std::span(sent));
}

TEST(LinkedChannel, more_truncated_messages_in_a_row_than_the_window_holds_do_not_stop_it) {
  Pair pair;
  const std::vector<std::byte> sent(kLarge);
  std::vector<std::byte> landed(kEagerBytes + 1);
  for (unsigned message = 0; message < kWindowMessages + 10; ++message) {
    Operation receive = pair.right.recv(std::span(landed));
    pair.job.run(2);  // announced, so that the sender truncates
    Operation send = pair.left.send(std::span(sent));
    ASSERT_EQ(pair.outcome(send).status, Status::truncated) << message;
    ASSERT_EQ(pair.outcome(receive).status, Status::truncated) << message;
  }
  test::expect_order_goes_on(pair);
}

TEST(LinkedChannel, a_withdrawn_receive_gives_its_turn_to_the_next) {
  Pair pair;
  std::vector<std::byte> first(kLarge), second(kLarge);
  Operation withdrawn = pair.right.recv(std::span(first));
  pair.job.run(5);  // the sender knows of it
  withdrawn.op().cancel();
  EXPECT_EQ(pair.outcome(withdrawn).status, Status::canceled);
  const auto sent = pattern(kLarge, 2);
  Operation receive = pair.right.recv(std::span(second));
  Operation send = pair.left.send(std::span(sent));
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_EQ(second, sent);
  EXPECT_EQ(first, std::vector<std::byte>(kLarge));
}

TEST(LinkedChannel, a_cancel_that_crosses_its_message_comes_too_late) {
  Pair pair;
  const auto sent = pattern(kLarge, 2);
  std::vector<std::byte> landed(kLarge);
  Operation receive = pair.right.recv(std::span(landed));
  pair.run(0, 3);
  Operation send = pair.left.send(std::span(sent));  // pieces are under way
  receive.op().cancel();
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_EQ(landed, sent);
}

TEST(LinkedChannel, a_receive_taken_back_in_mid_message_loses_nothing) {
  Pair pair;
  const auto sent = pattern(kLarge, 4);
  auto gone = std::make_unique<std::vector<std::byte>>(kLarge);
  auto receive = std::unique_ptr<Operation>(new Operation(pair.right.recv(std::span(*gone))));
  pair.run(0, 3);
  Operation send = pair.left.send(std::span(sent));
  pair.run(1, 1);  // some pieces land
  ASSERT_FALSE(receive->done());
  receive.reset();
  gone.reset();  // from here on the sanitizer watches
  std::vector<std::byte> landed(kLarge);
  Operation next = pair.right.recv(std::span(landed));
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_TRUE(pair.outcome(next).ok());
  EXPECT_EQ(landed, sent);
}

TEST(LinkedChannel, a_receive_taken_back_before_its_message_loses_nothing) {
  for (const std::size_t bytes : {std::size_t{64}, kLarge}) {
    Pair pair;
    const auto sent = pattern(bytes, 4);
    {
      std::vector<std::byte> gone(kLarge);
      Operation receive = pair.right.recv(std::span(gone));
      pair.run(0, 3);
    }
    Operation send = pair.left.send(std::span(sent));  // crosses the retraction
    std::vector<std::byte> landed(kLarge);
    Operation next = pair.right.recv(std::span(landed));
    EXPECT_TRUE(pair.outcome(next).ok());
    EXPECT_EQ(next.result().bytes, bytes);
    landed.resize(bytes);
    EXPECT_EQ(landed, sent);
  }
}

TEST(LinkedChannel, a_sender_that_nobody_listens_to_is_held_back) {
  Pair pair;
  constexpr int kMessages = 5000;
  std::vector<int> values(kMessages);
  Counter sent;
  std::vector<Op> ops(kMessages);
  for (int i = 0; i < kMessages; ++i) {
    values[static_cast<std::size_t>(i)] = i;
    Op& op = ops[static_cast<std::size_t>(i)];
    op.source_free = sent.sink();
    sent.track(pair.left.post_send(ConstBuffer(&values[static_cast<std::size_t>(i)], sizeof(int)), op), op);
  }
  pair.run(0, 1000);
  EXPECT_GT(sent.pending(), 4000u);
  for (int i = 0; i < kMessages; ++i) {
    int got = -1;
    Operation receive = pair.right.recv(Buffer(&got, sizeof(got)));
    ASSERT_TRUE(pair.outcome(receive).ok());
    ASSERT_EQ(got, i);
  }
  EXPECT_TRUE(pair.job.run_until([&] { return sent.pending() == 0; }));
}

TEST(LinkedChannel, many_large_messages_of_many_channels_share_the_ring) {
  InProcessJob job(linked());
  constexpr std::uint32_t kChannels = 5;
  constexpr unsigned kMessages = 6;
  std::vector<Channel> left, right;
  for (std::uint32_t id = 0; id < kChannels; ++id) {
    left.push_back(Channel::open(job.rank(0), Rank{1}, ChannelId{id}));
    right.push_back(Channel::open(job.rank(1), Rank{0}, ChannelId{id}));
  }
  std::vector<std::vector<std::byte>> sent, landed(kChannels * kMessages);
  std::vector<std::unique_ptr<Operation>> operations;
  for (unsigned i = 0; i < kChannels * kMessages; ++i) {
    sent.push_back(pattern(i % 3 == 0 ? 1000 : 300'000 + i, i));
    landed[i].resize(sent[i].size());
    operations.emplace_back(new Operation(right[i % kChannels].recv(std::span(landed[i]))));
  }
  for (unsigned i = 0; i < kChannels * kMessages; ++i) {
    operations.emplace_back(new Operation(left[i % kChannels].send(std::span(sent[i]))));
  }
  for (const auto& operation : operations) {
    ASSERT_TRUE(job.run_until([&] { return operation->done(); }));
    EXPECT_TRUE(operation->result().ok());
  }
  EXPECT_EQ(landed, sent);
}

TEST(LinkedChannel, messages_find_an_end_that_is_opened_after_them) {
  InProcessJob job(linked());
  Channel left = Channel::open(job.rank(0), Rank{1}, ChannelId{3});
  // Rank 1 knows of no channel yet: nobody has claimed the service.
  const auto sent = pattern(5000, 9);
  Operation send = left.send(std::span(sent));
  job.run(50);
  Channel unrelated = Channel::open(job.rank(1), Rank{0}, ChannelId{4});
  job.run(50);
  Channel right = Channel::open(job.rank(1), Rank{0}, ChannelId{3});
  std::vector<std::byte> landed(5000);
  Operation receive = right.recv(std::span(landed));
  ASSERT_TRUE(job.run_until([&] { return receive.done(); }));
  EXPECT_EQ(landed, sent);
}

TEST(LinkedChannel, ends_that_do_not_agree_on_the_path_are_refused_at_both) {
  InProcessJob job(linked());
  Channel left = Channel::open(job.rank(0), Rank{1}, ChannelId{3}, {.path = Path::ucx});
  Channel right = Channel::open(job.rank(1), Rank{0}, ChannelId{3});
  int value = 1, got = 0;
  Operation receive = right.recv(Buffer(&got, sizeof(got)));
  Operation answer = left.recv(Buffer(&value, sizeof(value)));
  ASSERT_TRUE(job.run_until([&] { return receive.done() && answer.done(); })) << "it must not hang";
  EXPECT_EQ(receive.result().status, Status::invalid_argument);
  EXPECT_EQ(answer.result().status, Status::invalid_argument);
  Op op;
  EXPECT_EQ(left.post_send(ConstBuffer(&value, sizeof(value)), op), Status::invalid_argument);
  EXPECT_EQ(right.post_send(ConstBuffer(&value, sizeof(value)), op), Status::invalid_argument);
}

TEST(LinkedChannel, path_ucx_forced_at_both_ends_uses_no_link) {
  JobOptions options = linked();
  options.runtime.path = Path::ucx;
  Pair pair(options);
  EXPECT_EQ(*pair.left.path_of(MemoryKind::host, 8), Path::ucx);
  const auto sent = pattern(kLarge, 1);
  std::vector<std::byte> landed(kLarge);
  Operation receive = pair.right.recv(std::span(landed));
  Operation send = pair.left.send(std::span(sent));
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_EQ(landed, sent);
}

TEST(LinkedChannel, small_host_messages_reach_device_memory_whichever_comes_first) {
  Pair pair(linked(GpuChoice::emulated));
  for (const bool receive_first : {true, false}) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{4000}, kLarge}) {
      const auto sent = pattern(bytes, 6);
      Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, bytes);
      std::unique_ptr<Operation> receive;
      if (receive_first) receive.reset(new Operation(pair.right.recv(landing)));
      pair.job.run(5);
      Operation send = pair.left.send(std::span(sent));
      pair.job.run(5);
      if (!receive_first) receive.reset(new Operation(pair.right.recv(landing)));
      ASSERT_TRUE(pair.outcome(*receive).ok());
      std::vector<std::byte> got(bytes);
      pair.job.rank(1).copy(Buffer(got.data(), bytes), landing);
      EXPECT_EQ(got, sent);
      EXPECT_TRUE(pair.outcome(send).ok());
    }
  }
}

TEST(LinkedChannel, a_withdrawn_receive_of_a_message_over_the_network_gives_its_turn_to_the_next) {
  JobOptions options = linked();
  options.runtime.path = Path::automatic;
  options.network.delay_max = 50;
  Pair pair(options);
  const auto sent = pattern(100'000, 8);
  ASSERT_EQ(*pair.left.path_of(std::span(sent)), Path::ucx);
  std::vector<std::byte> landing(sent.size());
  Operation withdrawn = pair.right.recv(std::span(landing));
  Operation send = pair.left.send(std::span(sent));
  pair.run(1, 1);  // word of it is here, the message is not
  withdrawn.op().cancel();
  EXPECT_EQ(pair.outcome(withdrawn).status, Status::canceled) << "the case was not met";
  Operation next = pair.right.recv(std::span(landing));
  ASSERT_TRUE(pair.outcome(next).ok());
  EXPECT_EQ(landing, sent);
}

// Device memory that the peer has mapped
// ---------------------------------------------------------------------------------------------------

TEST(MappedChannel, device_memory_goes_by_the_copy_engine_whichever_side_comes_first) {
  MappedPair pair;
  ASSERT_EQ(*pair.left.path_of(MemoryKind::emulated, 8), test::small_mapped_path());
  for (const bool receive_first : {true, false}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{9000}, kLarge}) {
      const auto sent = pattern(bytes, 6);
      Memory source = pair.filled(0, sent);
      Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, bytes);
      std::unique_ptr<Operation> receive;
      if (receive_first) receive.reset(new Operation(pair.right.recv(landing)));
      pair.job.run(5);
      Operation send = pair.left.send(source, Moment::delivered);
      pair.job.run(5);
      if (!receive_first) receive.reset(new Operation(pair.right.recv(landing)));
      ASSERT_TRUE(pair.outcome(*receive).ok());
      EXPECT_EQ(receive->result().bytes, bytes);
      EXPECT_TRUE(pair.outcome(send).ok());
      EXPECT_EQ(pair.contents(1, landing), sent);
    }
  }
}

TEST(MappedChannel, parts_of_one_allocation_land_where_they_belong) {
  MappedPair pair;
  constexpr std::size_t kParts = 100;
  const auto sent = pattern(kParts * 1000, 7);
  Memory source = pair.filled(0, sent);
  Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, sent.size());
  std::vector<std::unique_ptr<Operation>> operations;
  for (std::size_t part = 0; part < kParts; ++part) {
    operations.emplace_back(new Operation(pair.right.recv(landing.part(part * 1000, 1000))));
  }
  for (std::size_t part = 0; part < kParts; ++part) {
    operations.emplace_back(new Operation(pair.left.send(source.part(part * 1000, 1000))));
  }
  for (const auto& operation : operations) ASSERT_TRUE(pair.outcome(*operation).ok());
  EXPECT_EQ(pair.contents(1, landing), sent);
}

TEST(MappedChannel, memory_allocated_again_at_the_same_address_is_mapped_again) {
  MappedPair pair;
  for (unsigned round = 0; round < 20; ++round) {
    const auto sent = pattern(5000 + round, round);
    Memory source = pair.filled(0, sent);
    Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, sent.size());
    Operation receive = pair.right.recv(landing);
    Operation send = pair.left.send(source);
    ASSERT_TRUE(pair.outcome(receive).ok());
    ASSERT_TRUE(pair.outcome(send).ok());
    EXPECT_EQ(pair.contents(1, landing), sent) << round;
  }
}

TEST(MappedChannel, a_long_message_is_truncated_and_both_ends_know_it) {
  MappedPair pair;
  Memory source = pair.filled(0, pattern(5000, 1));
  Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, 4999);
  Operation receive = pair.right.recv(landing);
  pair.job.run(5);
  Operation send = pair.left.send(source);
  EXPECT_EQ(pair.outcome(receive).status, Status::truncated);
  EXPECT_EQ(pair.outcome(send).status, Status::truncated);
}

TEST(MappedChannel, memory_that_is_freed_and_allocated_again_is_mapped_again_and_again) {
  // Rounds follow each other fast enough to call a courier, on a slow machine too.
  const test::ScopedVariable idle("BRANT_COURIER_IDLE_US", "20000");
  MappedPair pair;
  const auto sent = pattern(5000, 3);
  Memory source = pair.filled(0, sent);
  constexpr int kRounds = 1100;  // more than can be mapped at a time
  for (int round = 0; round < kRounds; ++round) {
    Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, 5000);
    Operation receive = pair.right.recv(landing);
    Operation send = pair.left.send(source);
    ASSERT_TRUE(pair.outcome(receive).ok());
    ASSERT_TRUE(pair.outcome(send).ok());
    if (round % 100 == 0) {
      ASSERT_EQ(pair.contents(1, landing), sent);
    }
  }
  const auto& counters = pair.job.rank(0).worker().engine().counters();
  const auto sends = [&](Path path) { return counters.path(path).sends.read(); };
  EXPECT_EQ(sends(Path::copy_engine) + sends(Path::courier), static_cast<std::uint64_t>(kRounds));
  EXPECT_EQ(sends(Path::courier) != 0, test::small_mapped_path() == Path::courier);
}

TEST(MappedChannel, memory_freed_while_its_message_waits_is_an_error_at_both_ends) {
  constexpr std::size_t kAsking = 50'000;  // too much for a slot
  MappedPair pair;
  for (const bool allocated_again : {true, false}) {
    Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, kAsking);
    auto source = std::make_unique<Memory>(pair.filled(0, pattern(kAsking, 3)));
    Operation send = pair.left.send(*source);
    pair.job.run(5);
    ASSERT_FALSE(send.done());
    source.reset();
    Memory other;
    if (allocated_again) other = pair.job.rank(0).allocate(MemoryKind::emulated, kAsking);
    Operation receive = pair.right.recv(landing);
    EXPECT_EQ(pair.outcome(send).status, Status::invalid_argument);
    EXPECT_EQ(pair.outcome(receive).status, Status::peer_rejected);
  }
}

TEST(MappedChannel, a_cancelled_receive_gives_its_turn_to_the_next) {
  MappedPair pair;
  const auto sent = pattern(5000, 3);
  Memory source = pair.filled(0, sent);
  Memory first = pair.job.rank(1).allocate(MemoryKind::emulated, 5000);
  Memory second = pair.job.rank(1).allocate(MemoryKind::emulated, 5000);
  Operation withdrawn = pair.right.recv(first);
  pair.job.run(5);
  withdrawn.op().cancel();
  EXPECT_EQ(pair.outcome(withdrawn).status, Status::canceled);
  Operation receive = pair.right.recv(second);
  Operation send = pair.left.send(source);
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_EQ(pair.contents(1, second), sent);
}

TEST(MappedChannel, what_cannot_be_mapped_goes_over_the_network_or_through_the_host) {
  for (const bool network_takes : {true, false}) {
    JobOptions options = linked(GpuChoice::emulated);
    options.mappable = [](const port::ExportRecord&) { return false; };
    options.network_takes_device = network_takes;
    Pair pair(options);
    for (const bool receive_first : {true, false}) {
      for (const std::size_t bytes : {std::size_t{100}, kLarge}) {
        const auto sent = pattern(bytes, 3);
        Memory source = pair.job.rank(0).allocate(MemoryKind::emulated, bytes);
        Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, bytes);
        pair.job.rank(0).copy(source, std::span(sent));
        std::unique_ptr<Operation> receive;
        if (receive_first) receive.reset(new Operation(pair.right.recv(landing)));
        pair.job.run(5);
        Operation send = pair.left.send(source);
        pair.job.run(5);
        if (!receive_first) receive.reset(new Operation(pair.right.recv(landing)));
        ASSERT_TRUE(pair.outcome(*receive).ok()) << network_takes << bytes;
        EXPECT_TRUE(pair.outcome(send).ok());
        std::vector<std::byte> got(bytes);
        pair.job.rank(1).copy(std::span(got), landing);
        EXPECT_EQ(got, sent);
      }
    }
  }
}

TEST(MappedChannel, a_landing_that_cannot_be_exported_goes_over_the_network_and_counts_there) {
  int asked = 0;
  JobOptions options = linked(GpuChoice::emulated);
  options.network_takes_device = true;
  options.exportable = [&](const port::PointerInfo& info) {
    asked += info.bytes == kLarge ? 1 : 0;
    return info.bytes != kLarge;
  };
  Pair pair(options);
  const Counters& counters = pair.job.rank(0).worker().engine().counters();
  const auto sent = pattern(kLarge, 3);
  Memory source = pair.job.rank(0).allocate(MemoryKind::emulated, kLarge);
  Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, kLarge);
  pair.job.rank(0).copy(source, std::span(sent));
  constexpr std::uint64_t kMessages = 5;
  for (std::uint64_t message = 0; message < kMessages; ++message) {
    Operation receive = pair.right.recv(landing);
    pair.job.run(5);
    Operation send = pair.left.send(source);
    ASSERT_TRUE(pair.outcome(receive).ok());
    EXPECT_TRUE(pair.outcome(send).ok());
  }
  std::vector<std::byte> got(kLarge);
  pair.job.rank(1).copy(std::span(got), landing);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(asked, 2) << "once for a handle and once for a file: each question asks the driver";
  EXPECT_EQ(counters.path(Path::ucx).sends.read(), kMessages);
  EXPECT_EQ(counters.path(Path::copy_engine).sends.read(), 0u);
  // It is about that allocation, not about its size, its addresses or the channel.
  landing = Memory();
  Memory next = pair.job.rank(1).allocate(MemoryKind::emulated, kLarge - 1);
  Operation receive = pair.right.recv(next);
  pair.job.run(5);
  Operation send = pair.left.send(source.part(0, kLarge - 1));
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_EQ(counters.path(Path::ucx).sends.read(), kMessages);
}

TEST(LinkedChannel, path_staged_stages_nothing_between_host_memories_and_nothing_is_called_so) {
  JobOptions options = linked();
  options.runtime.path = Path::staged;
  Pair pair(options);
  const Counters& sender = pair.job.rank(0).worker().engine().counters();
  const Counters& receiver = pair.job.rank(1).worker().engine().counters();
  for (const auto& [bytes, path] : {std::pair{std::size_t{8}, Path::shm}, std::pair{std::size_t{65536}, Path::ucx}}) {
    const auto sent = pattern(bytes, 4);
    EXPECT_EQ(*pair.left.path_of(std::span(sent)), path);
    std::vector<std::byte> landed(bytes);
    Operation receive = pair.right.recv(std::span(landed));
    Operation send = pair.left.send(std::span(sent));
    EXPECT_TRUE(pair.outcome(receive).ok());
    EXPECT_TRUE(pair.outcome(send).ok());
    EXPECT_EQ(sender.path(path).sends.read(), 1u);
    EXPECT_EQ(receiver.path(path).receives.read(), 1u);
  }
  EXPECT_EQ(sender.path(Path::staged).sends.read() + receiver.path(Path::staged).receives.read(), 0u);
}

TEST(LinkedChannel, a_receive_counts_for_the_path_its_message_took) {
  JobOptions options = linked();
  options.runtime.path = Path::automatic;
  Pair pair(options);
  const Counters& counters = pair.job.rank(1).worker().engine().counters();
  const auto sent = pattern(8, 4);
  std::vector<std::byte> roomy(65536);
  Operation receive = pair.right.recv(std::span(roomy));
  Operation send = pair.left.send(std::span(sent));
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_EQ(counters.path(Path::shm).receives.read(), 1u);
  EXPECT_EQ(counters.path(Path::ucx).receives.read(), 0u) << "by which a message of that size would come";
}

TEST(MappedChannel, path_staged_forced_goes_through_the_host) {
  JobOptions options = linked(GpuChoice::emulated);
  options.runtime.path = Path::staged;
  Pair pair(options);
  EXPECT_EQ(*pair.left.path_of(MemoryKind::emulated, 8), Path::staged);
  const auto sent = pattern(kLarge, 3);
  Memory source = pair.job.rank(0).allocate(MemoryKind::emulated, kLarge);
  Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, kLarge);
  pair.job.rank(0).copy(source, std::span(sent));
  Operation receive = pair.right.recv(landing);
  Operation send = pair.left.send(source);
  ASSERT_TRUE(pair.outcome(receive).ok());
  std::vector<std::byte> got(kLarge);
  pair.job.rank(1).copy(std::span(got), landing);
  EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace brant
