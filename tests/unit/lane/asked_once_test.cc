// How often the device is asked about the memory of a message: a question costs some hundred nanoseconds.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "core/engine.h"
#include "ops/lane/data_lanes.h"
#include "ops/lane/data_sources.h"
#include "support/in_process_job.h"
#include "support/wrapped_device.h"

namespace brant::lane {
namespace {

using test::InProcessJob;

constexpr std::size_t kBytes = 4096;

struct CountingDevice final : test::WrappedDevice {
  CountingDevice(std::unique_ptr<port::Device> inner, int& questions_in) noexcept
      : WrappedDevice(std::move(inner)), questions(questions_in) {}
  Result<port::PointerInfo> query(const void* pointer) noexcept override {
    ++questions;
    return WrappedDevice::query(pointer);
  }
  int& questions;
};

class AskedOnce : public testing::Test {
 protected:
  test::JobOptions options() {
    test::JobOptions options;
    options.links = true;
    options.gpu = GpuChoice::emulated;
    options.wrap_device = [this](int rank, std::unique_ptr<port::Device> inner) -> std::unique_ptr<port::Device> {
      return std::make_unique<CountingDevice>(std::move(inner), questions_[static_cast<std::size_t>(rank)]);
    };
    return options;
  }
  DataLanes& lanes(int rank) { return job_.rank(rank).worker().engine().service<DataLanes>(); }
  /// Of each rank in the round with the fewest: the first one tells the other end of the allocations, and now and then
  /// the device is asked which of these have been freed.
  template <typename Round>
  std::array<int, 2> fewest_questions(Round&& round) {
    std::array<int, 2> fewest{1000, 1000};
    for (int i = 0; i < 20; ++i) {
      questions_ = {};
      round();
      for (std::size_t rank = 0; rank < 2; ++rank) fewest[rank] = std::min(fewest[rank], questions_[rank]);
    }
    return fewest;
  }

  /// A call's argument, sent with all that a call does. Returns its number.
  std::uint64_t send(const Memory& memory, MemoryKind declared) {
    const std::uint64_t number = lanes(0).next_number(1);
    detail::DataSource source;
    source.buffer = ConstBuffer(memory.data(), kBytes, declared);
    DataMeta meta;
    lanes(0).send(1, take_sources(lanes(0), {}, "call", &source, &meta, 1));
    EXPECT_EQ(meta.kind, MemoryKind::emulated);
    return number;
  }
  /// Whoever knows the landing has asked of it, or leaves that to the lane.
  void receive(const Memory& memory, std::uint64_t number, bool asks) {
    DataPart* part = lanes(1).take_part();
    part->landing = memory.part(0, kBytes);
    part->ended = [](DataPart& ended, Status) noexcept { ended.lanes.give_back(ended); };
    if (asks) {
      MemoryKinds& kinds = job_.rank(1).worker().engine().memory_kinds();
      ASSERT_EQ(kinds.resolve(memory.data(), kBytes, part->landing.kind, part->memory), Status::ok);
    }
    const Status status = lanes(1).receive(*part, 0, number);
    if (status != Status::in_progress) part->ended(*part, status);
    ASSERT_TRUE(job_.run_until([&] { return lanes(0).sources_idle(); }));
  }

  std::array<int, 2> questions_{};
  InProcessJob job_{options()};
  Memory source_ = job_.rank(0).allocate(MemoryKind::emulated, kBytes);
  Memory landing_ = job_.rank(1).allocate(MemoryKind::emulated, kBytes);
};

TEST_F(AskedOnce, by_each_end_of_a_channel) {
  Channel left = Channel::open(job_.rank(0), Rank{1}, ChannelId{7});
  Channel right = Channel::open(job_.rank(1), Rank{0}, ChannelId{7});
  for (const MemoryKind declared : {MemoryKind::detect, MemoryKind::emulated}) {
    const auto questions = fewest_questions([&] {
      Operation received = right.recv(Buffer(landing_.data(), kBytes, declared));
      Operation sent = left.send(ConstBuffer(source_.data(), kBytes, declared));
      EXPECT_EQ(job_.outcome(received).status, Status::ok);
      EXPECT_EQ(job_.outcome(sent).status, Status::ok);
    });
    EXPECT_EQ(questions[0], 1);
    EXPECT_EQ(questions[1], 1);
  }
}

TEST_F(AskedOnce, by_a_call_with_data_and_by_who_knows_its_landing) {
  for (const MemoryKind declared : {MemoryKind::detect, MemoryKind::emulated}) {
    for (const bool asks : {false, true}) {
      const auto questions = fewest_questions([&] { receive(landing_, send(source_, declared), asks); });
      // Once more when the landing is known: the program may have freed the source meanwhile.
      EXPECT_EQ(questions[0], 2);
      EXPECT_EQ(questions[1], 1) << "asks: " << asks;
    }
  }
}

}  // namespace
}  // namespace brant::lane
