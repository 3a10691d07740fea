// Data beside messages, without the messages: the tests carry the numbers from one rank to the other themselves.
#include "ops/lane/data_lanes.h"

#include <array>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "support/in_process_job.h"

namespace brant::lane {
namespace {

using test::InProcessJob;

/// A source, and what its owner was told of it.
struct Source {
  explicit Source(std::vector<int> items) : values(std::move(items)) {}
  std::vector<int> values;
  int told = 0;
  Status status = Status::in_progress;
};

/// A landing of `ints` numbers, and what became of it.
struct Landing {
  explicit Landing(std::size_t ints) : values(ints) {}
  std::vector<int> values;
  int ended = 0;
  Status status = Status::in_progress;
};

class DataLanesTest : public ::testing::Test {
 protected:
  DataLanes& lanes(int rank) { return job_.rank(rank).worker().engine().service<DataLanes>(); }

  DataOrigin* origin_of(DataLanes& lanes, Source& source) {
    DataOrigin* origin = lanes.take_origin();
    origin->buffer = ConstBuffer(source.values.data(), source.values.size() * sizeof(int), MemoryKind::host);
    origin->free = {[](void* self, const OpResult& result) noexcept {
                      auto& told = *static_cast<Source*>(self);
                      ++told.told;
                      told.status = result.status;
                    },
                    &source};
    return origin;
  }
  /// Sends `source` from rank 0 to rank 1; gives its number.
  std::uint64_t send(Source& source) {
    const std::uint64_t number = lanes(0).next_number(1);
    lanes(0).send(1, origin_of(lanes(0), source));
    return number;
  }
  DataPart* part_of(DataLanes& lanes, Landing& landing) {
    DataPart* part = lanes.take_part();
    part->landing = Buffer(landing.values.data(), landing.values.size() * sizeof(int), MemoryKind::host);
    part->owner = &landing;
    part->ended = [](DataPart& ended, Status status) noexcept {
      auto& of = *static_cast<Landing*>(ended.owner);
      ++of.ended;
      of.status = status;
      ended.lanes.give_back(ended);
    };
    return part;
  }
  void receive(Landing& landing, std::uint64_t number) {
    DataPart* part = part_of(lanes(1), landing);
    const Status status = lanes(1).receive(*part, 0, number);
    if (status != Status::in_progress) part->ended(*part, status);
  }
  static DataMeta meta_of(const Source& source) {
    return {source.values.size() * sizeof(int), MemoryKind::host, false, {}};
  }

  InProcessJob job_;
};

TEST_F(DataLanesTest, carry_data_by_number_whatever_the_order_of_the_receives) {
  Source first({1, 2, 3}), second({4, 5});
  Landing for_first(3), for_second(2);
  const std::uint64_t number = send(first);
  EXPECT_EQ(send(second), number + 1);
  receive(for_second, number + 1);
  receive(for_first, number);
  ASSERT_TRUE(job_.run_until([&] { return for_first.ended == 1 && for_second.ended == 1 && lanes(0).sources_idle(); }));
  EXPECT_EQ(for_first.status, Status::ok);
  EXPECT_EQ(for_first.values, first.values);
  EXPECT_EQ(for_second.values, second.values);
  EXPECT_EQ(first.told, 1);
  EXPECT_EQ(first.status, Status::ok);
}

TEST_F(DataLanesTest, tell_a_source_once_when_its_last_user_has_let_go) {
  Source source({7});
  DataOrigin* origin = origin_of(lanes(0), source);
  DataLanes::share(origin);
  lanes(0).release(origin, Status::ok);
  job_.run(20);
  EXPECT_EQ(source.told, 0);
  lanes(0).release(origin, Status::canceled);
  EXPECT_EQ(source.told, 0) << "not inside the call that passed it";
  EXPECT_FALSE(lanes(0).sources_idle());
  job_.run(20);
  EXPECT_EQ(source.told, 1);
  EXPECT_EQ(source.status, Status::canceled);
  EXPECT_TRUE(lanes(0).sources_idle());
}

/// More than the window of a channel: were one of them not received, what follows would never come.
TEST_F(DataLanesTest, swallow_what_nobody_wants_so_that_the_rest_goes_on) {
  constexpr int kMany = 1000;
  std::vector<Source> unwanted(kMany, Source({1, 2, 3, 4}));
  for (Source& source : unwanted) {
    const std::uint64_t number = send(source);
    const DataMeta meta = meta_of(source);
    lanes(1).swallow(0, number, &meta, 1);
    job_.run(1);
  }
  Source wanted({8, 9});
  Landing landing(2);
  receive(landing, send(wanted));
  ASSERT_TRUE(job_.run_until([&] { return landing.ended == 1 && lanes(0).sources_idle(); }));
  EXPECT_EQ(landing.values, wanted.values);
  for (const Source& source : unwanted) EXPECT_EQ(source.told, 1);
  EXPECT_EQ(lanes(1).landings().lent(), 0u);
  EXPECT_EQ(lanes(1).broken().status, Status::ok);
}

TEST_F(DataLanesTest, send_beyond_the_window_when_there_is_room) {
  constexpr int kMany = 600;
  std::vector<Source> sources(kMany, Source({5}));
  std::vector<Landing> landings(kMany, Landing(1));
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::uint64_t number = send(sources[i]);
    if (i == 0) first = number;
    EXPECT_EQ(number, first + i);
  }
  for (std::size_t i = 0; i < landings.size(); ++i) receive(landings[i], first + i);
  ASSERT_TRUE(job_.run_until([&] { return landings.back().ended == 1 && lanes(0).sources_idle(); }));
  for (const Landing& landing : landings) EXPECT_EQ(landing.values.front(), 5);
}

TEST_F(DataLanesTest, tell_the_receiver_of_data_that_is_not_of_the_size_that_was_announced) {
  Source small({1}), large({1, 2, 3});
  Landing too_large(2), too_small(2);
  receive(too_large, send(small));
  receive(too_small, send(large));
  ASSERT_TRUE(job_.run_until([&] { return too_large.ended == 1 && too_small.ended == 1; }));
  EXPECT_EQ(too_large.status, Status::truncated);
  EXPECT_EQ(too_small.status, Status::truncated);
  ASSERT_TRUE(job_.run_until([&] { return lanes(0).sources_idle(); }));
  EXPECT_EQ(lanes(0).broken().status, Status::ok) << "it is the receiver's fault, and its to report";
}

TEST_F(DataLanesTest, copy_within_the_process) {
  Source source({3, 1, 4});
  Landing landing(3);
  DataPart* part = part_of(lanes(0), landing);
  part->origin = origin_of(lanes(0), source);
  EXPECT_EQ(lanes(0).copy(*part), Status::ok);
  EXPECT_EQ(landing.values, source.values);
  lanes(0).give_back(*part);
  job_.run(5);
  EXPECT_EQ(source.told, 1);
}

TEST(DataLanesOnDevice, copy_between_host_and_device_and_back) {
  InProcessJob job(test::ranks(1, GpuChoice::emulated));
  Runtime& runtime = job.rank(0);
  DataLanes& lanes = runtime.worker().engine().service<DataLanes>();
  std::array<int, 4> values{2, 7, 1, 8}, back{};
  Memory device = runtime.allocate(runtime.device_kind(), sizeof(values));
  Memory other = runtime.allocate(runtime.device_kind(), sizeof(values));
  const auto copy = [&](Buffer to, ConstBuffer from) {
    bool done = false;
    DataPart* part = lanes.take_part();
    part->origin = lanes.take_origin();
    part->origin->buffer = from;
    part->landing = to;
    part->owner = &done;
    part->ended = [](DataPart& ended, Status status) noexcept {
      EXPECT_EQ(status, Status::ok);
      *static_cast<bool*>(ended.owner) = true;
      ended.lanes.give_back(ended);
    };
    ASSERT_EQ(lanes.copy(*part), Status::in_progress);
    EXPECT_TRUE(job.run_until([&] { return done; }));
  };
  copy(device, ConstBuffer(values.data(), sizeof(values), MemoryKind::host));
  copy(other, device);
  copy(Buffer(back.data(), sizeof(back), MemoryKind::host), other);
  EXPECT_EQ(back, values);
}

}  // namespace
}  // namespace brant::lane
