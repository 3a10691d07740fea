// Runs as both ranks of a job (`brant run -n 2`): device memory that the other process maps by means of a file. With a
// GPU it is that of the driver's pools and of cuMemCreate; the emulated device's is such with BRANT_EMULATED_FILES=1.
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/device.h"
#include "brant/ops/rma.h"
#include "core/engine.h"
#include "multi/channel/block.h"
#include "support/driver_memory.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::DriverMemory;
using test::job;
using Sort = DriverMemory::Sort;

constexpr std::size_t kBytes = std::size_t{1} << 20;
constexpr std::size_t kPiece = std::size_t{2} << 20;  ///< What the driver maps at least.

Rank other() { return Rank{job().rank().value ^ 1}; }
unsigned self() { return static_cast<unsigned>(job().rank().value); }

void wait_for(const Operation& operation) {
  EXPECT_EQ(job().worker().wait_until([&]() noexcept { return operation.done(); }, std::chrono::seconds(60)),
            Status::ok);
  EXPECT_TRUE(operation.done() && operation.result().ok());
}

/// What the other process maps by means of a file, filled and compared through host memory.
class FileBlock {
 public:
  FileBlock(Sort sort, std::size_t bytes) : sort_(sort), bytes_(bytes), host_(bytes) { allocate(); }

  /// Where an allocation begins; of segments, the second of two.
  [[nodiscard]] Buffer view() const {
    std::byte* at = own_ ? own_->as<std::byte>() : drivers_->at(sort_ == Sort::segments ? kPiece : 0);
    return {at, bytes_, job().device_kind()};
  }
  /// Of segments: some bytes of the first, and the others of the second.
  [[nodiscard]] Buffer across() const { return {drivers_->at(kPiece - bytes_ / 3), bytes_, job().device_kind()}; }
  void fill(Buffer view, unsigned seed) {
    for (std::size_t i = 0; i < bytes_; ++i) host_[i] = test::expected(i, seed);
    job().copy(view, ConstBuffer(host_.data(), bytes_, MemoryKind::host));
  }
  [[nodiscard]] bool holds(Buffer view, unsigned seed) {
    job().copy(Buffer(host_.data(), bytes_, MemoryKind::host), view);
    for (std::size_t i = 0; i < bytes_; ++i) {
      if (host_[i] != test::expected(i, seed)) return false;
    }
    return true;
  }
  void free_and_allocate_again() {
    own_.reset();
    drivers_.reset();
    allocate();
  }

 private:
  void allocate() {
    if (job().device_kind() == MemoryKind::emulated) {
      own_.emplace(job().allocate(MemoryKind::emulated, bytes_));
      return;
    }
    const Stream makes_a_context_current = job().device().create_stream();
    const std::size_t bytes = sort_ == Sort::segments ? 2 * kPiece : bytes_;
    drivers_ = std::make_unique<DriverMemory>(sort_, bytes, job().worker().engine().device().capabilities().ordinal);
    if (drivers_->at() == nullptr) throw std::runtime_error("the driver refuses such memory");
  }

  const Sort sort_;
  const std::size_t bytes_;
  std::optional<Memory> own_;
  std::unique_ptr<DriverMemory> drivers_;
  std::vector<std::byte> host_;
};

class FileMemory : public testing::TestWithParam<Sort> {
 protected:
  void SetUp() override {
    const port::DeviceCapabilities& device = job().worker().engine().device().capabilities();
    const bool emulated = job().device_kind() == MemoryKind::emulated;
    if (!device.file_exports) GTEST_SKIP() << device.name << ": no device whose memory is a file";
    if (emulated && device.exports) GTEST_SKIP() << "the emulated device needs BRANT_EMULATED_FILES=1";
    if (emulated && GetParam() != Sort::pooled) GTEST_SKIP() << "the emulated device has one sort";
    channel_ = std::make_unique<Channel>(Channel::open(job(), other(), ChannelId{++last_channel_}));
  }
  Channel& channel() { return *channel_; }

  /// Each rank receives what the other has.
  void exchange(FileBlock& source, FileBlock& landing, Buffer into, unsigned seed) {
    source.fill(source.view(), self() + 2 * seed);
    Operation receive = channel().recv(into);
    Operation send = channel().send(source.view(), Moment::delivered);
    wait_for(receive);
    wait_for(send);
    EXPECT_TRUE(landing.holds(into, (self() ^ 1u) + 2 * seed)) << "message " << seed;
  }
  /// Whether that holds at both ranks.
  bool at_both(bool here) {
    std::byte mine{here ? std::byte{1} : std::byte{0}}, theirs{0};
    Operation receive = channel().recv(Buffer(&theirs, 1, MemoryKind::host));
    Operation send = channel().send(ConstBuffer(&mine, 1, MemoryKind::host), Moment::delivered);
    wait_for(receive);
    wait_for(send);
    return here && theirs == std::byte{1};
  }
  SegmentTicket ticket_for(const SegmentTicket& mine) {
    SegmentTicket theirs;
    Operation receive = channel().recv(Buffer(&theirs, sizeof(theirs), MemoryKind::host));
    Operation send = channel().send(ConstBuffer(&mine, sizeof(mine), MemoryKind::host), Moment::delivered);
    wait_for(receive);
    wait_for(send);
    return theirs;
  }
  static std::uint64_t sent_by_devices() {
    const Counters& counters = job().worker().engine().counters();
    return counters.path(Path::copy_engine).sends.read() + counters.path(Path::courier).sends.read();
  }

 private:
  static inline std::uint32_t last_channel_ = 0;
  std::unique_ptr<Channel> channel_;
};

std::string sort_name(const testing::TestParamInfo<Sort>& info) {
  return info.param == Sort::pooled ? "pooled" : info.param == Sort::created ? "created" : "segments";
}

INSTANTIATE_TEST_SUITE_P(Device, FileMemory, testing::Values(Sort::pooled, Sort::created, Sort::segments), sort_name);

constexpr unsigned kRounds = 1000;  ///< In which the file has surely come.

TEST_P(FileMemory, the_sender_of_a_message_copies_into_it_once_the_file_has_come) {
  FileBlock source(GetParam(), kBytes), landing(GetParam(), kBytes);
  unsigned round = 0;
  for (bool copied = false; !copied && round < kRounds; ++round) {
    const std::uint64_t before = sent_by_devices();
    exchange(source, landing, landing.view(), round);
    copied = at_both(sent_by_devices() == before + 1);
    if (HasFailure()) return;
  }
  ASSERT_LT(round, kRounds);
  for (const unsigned last = round + 10; round < last; ++round) {
    const std::uint64_t before = sent_by_devices();
    exchange(source, landing, landing.view(), round);
    EXPECT_EQ(sent_by_devices(), before + 1);
  }
}

TEST_P(FileMemory, what_is_freed_and_allocated_again_meanwhile_gets_its_own_messages) {
  FileBlock source(GetParam(), kBytes), landing(GetParam(), kBytes);
  for (unsigned round = 0; round < 30; ++round) {
    exchange(source, landing, landing.view(), round);
    if (round % 3 == 2) landing.free_and_allocate_again();
    if (round % 10 == 9) source.free_and_allocate_again();
  }
}

TEST_P(FileMemory, a_segment_is_put_into_from_the_start_and_by_the_device_once_the_file_has_come) {
  FileBlock source(GetParam(), kBytes), memory(GetParam(), kBytes);
  Segment segment = expose(job(), memory.view());
  RemoteSegment there(job(), other(), ticket_for(segment.ticket()));
  const auto by_device = [&] {
    const Result<Path> path = there.path_of(job().device_kind(), kBytes, RmaDirection::put);
    return path.ok() && (*path == Path::copy_engine || *path == Path::courier);
  };
  unsigned round = 0;
  for (bool mapped = false; !mapped && round < kRounds; ++round) {
    source.fill(source.view(), self() + 2 * round);
    wait_for(there.put(0, source.view()));
    mapped = at_both(by_device());
    EXPECT_TRUE(memory.holds(memory.view(), (self() ^ 1u) + 2 * round));
    static_cast<void>(at_both(true));  // looked at before the next one
    if (HasFailure()) return;
  }
  ASSERT_LT(round, kRounds);
  const std::uint64_t before = sent_by_devices();
  wait_for(there.put(0, source.view()));
  EXPECT_EQ(sent_by_devices(), before + 1);
  static_cast<void>(at_both(true));
}

TEST_P(FileMemory, streams_send_into_it) {
  StreamChannel channel = StreamChannel::open(job(), other(), ChannelId{1});
  Operation prepared = channel.prepare();
  wait_for(prepared);
  FileBlock source(GetParam(), kBytes), landing(GetParam(), kBytes);
  for (unsigned round = 0; round < 5; ++round) {
    const Stream stream = job().device().create_stream();
    source.fill(source.view(), self() + 2 * round);
    EXPECT_EQ(channel.recv_start(landing.view(), {.stream = stream}), Status::ok);
    EXPECT_EQ(channel.send(source.view(), {.stream = stream}), Status::ok);
    Operation finished(Moment::delivered,
                       [&](Op& op) noexcept { return channel.recv_finish({.stream = stream, .op = &op}); });
    wait_for(finished);
    EXPECT_TRUE(landing.holds(landing.view(), (self() ^ 1u) + 2 * round));
  }
  static_cast<void>(at_both(true));
}

TEST_P(FileMemory, more_allocations_than_are_fetched_at_a_time_all_get_their_messages) {
  FileBlock source(GetParam(), 65'536);
  std::vector<std::unique_ptr<FileBlock>> landings;
  for (unsigned i = 0; i < 60; ++i) landings.push_back(std::make_unique<FileBlock>(GetParam(), 65'536));
  for (unsigned round = 0; round < 3; ++round) {
    for (auto& landing : landings) exchange(source, *landing, landing->view(), round);
  }
}

TEST_P(FileMemory, a_landing_that_lies_in_two_allocations_gets_its_message_another_way) {
  if (GetParam() != Sort::segments) GTEST_SKIP() << "it has one";
  FileBlock source(GetParam(), kBytes), landing(GetParam(), kBytes);
  for (unsigned round = 0; round < 20; ++round) exchange(source, landing, landing.across(), round);
  Segment segment = expose(job(), landing.across());
  RemoteSegment there(job(), other(), ticket_for(segment.ticket()));
  source.fill(source.view(), self() + 100);
  wait_for(there.put(0, source.view()));
  static_cast<void>(at_both(true));
  EXPECT_TRUE(landing.holds(landing.across(), (self() ^ 1u) + 100));
  static_cast<void>(at_both(true));
}

}  // namespace
}  // namespace brant
