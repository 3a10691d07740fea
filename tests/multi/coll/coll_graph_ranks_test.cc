// Runs as every rank of a job: collectives of streams in graphs that are launched again and again, mixed with others
// that are queued one by one, and what `enqueue` refuses. The same program serves the emulated device and CUDA.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/team.h"
#include "brant/device.h"
#include "port/memory.h"
#include "support/effort.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::job;

class Graphs : public testing::Test {
 protected:
  Graphs() : team_(Team::world(job(), {.patience = std::chrono::seconds(60)})) {}
  void SetUp() override {
    const OpResult prepared = team_.prepare_streams();
    if (prepared.ok()) {
      stream_ = job().device().create_stream();
      return;
    }
    ASSERT_EQ(prepared.status, Status::not_supported);
    GTEST_SKIP() << "no devices that map each other's memory";
  }

  [[nodiscard]] Memory device(std::size_t bytes) const { return job().allocate(job().device_kind(), bytes); }
  [[nodiscard]] static port::Streams& streams() { return *job().device().inner().streams(); }
  void set(Memory& memory, std::int32_t value) const {
    const std::vector<std::int32_t> values(memory.bytes() / 4, value);
    job().copy(memory, ConstBuffer(std::span(values), MemoryKind::host));
  }
  /// What all elements are; -1: they differ.
  [[nodiscard]] std::int32_t get(const Memory& memory) const {
    std::vector<std::int32_t> values(memory.bytes() / 4);
    job().copy(Buffer(std::span(values), MemoryKind::host), memory);
    for (const std::int32_t value : values) {
      if (value != values[0]) return -1;
    }
    return values[0];
  }
  [[nodiscard]] Collective sum(const Memory& in, const Memory& out) const {
    return allreduce(ConstBuffer(in), Buffer(out), DataType::i32, ReduceOp::sum);
  }

  Team team_;
  Stream stream_;
};

TEST_F(Graphs, a_graph_is_launched_again_and_again_between_other_calls) {
  const int n = team_.size();
  Memory small = device(16), large = device(200'000), total = device(16), all = device(200'000);
  ASSERT_EQ(streams().begin_capture(stream_), Status::ok);
  EXPECT_EQ(team_.enqueue(sum(small, total), stream_), Status::ok);
  EXPECT_EQ(team_.enqueue(sum(large, all), stream_), Status::ok);
  EXPECT_EQ(team_.enqueue(barrier(), stream_), Status::ok);
  EXPECT_EQ(team_.enqueue(sum(all, all), stream_), Status::ok);
  port::Graph* const graph = streams().end_capture(stream_).value();
  Memory beside = device(40);
  for (int round = 0; round < test::effort(40, 10); ++round) {
    set(small, round + team_.rank());
    set(large, 2 * round);
    set(beside, 1);
    ASSERT_EQ(streams().launch(graph, stream_), Status::ok);
    if (round % 3 == 0) {
      EXPECT_EQ(team_.enqueue(sum(beside, beside), stream_), Status::ok);
    }
    if (round % 4 == 0) {
      ASSERT_EQ(streams().launch(graph, stream_), Status::ok);
    }
    ASSERT_EQ(stream_.synchronize(), Status::ok);
    ASSERT_EQ(team_.fault(), "");
    ASSERT_EQ(get(total), n * round + n * (n - 1) / 2) << round;
    ASSERT_EQ(get(all), 2 * round * n * n) << round;
    ASSERT_EQ(get(beside), round % 3 == 0 ? n : 1) << round;
  }
  streams().destroy_graph(graph);
}

/// What a program does with its own kernels between collectives: here a copy of the device stands for them, which reads
/// what one call has written, and writes what the next one reads. Two graphs of one team take turns.
TEST_F(Graphs, two_graphs_of_one_team_with_work_between_their_calls_are_replayed_a_thousand_times) {
  const int n = team_.size();
  Memory given = device(64), total = device(64), between = device(64), all = device(64), other = device(6400);
  const auto copy = [&](const Memory& from, Memory& to) { return streams().copy(to.data(), from.data(), 64, stream_); };
  ASSERT_EQ(streams().begin_capture(stream_), Status::ok);
  EXPECT_EQ(team_.enqueue(sum(given, total), stream_), Status::ok);
  EXPECT_EQ(copy(total, between), Status::ok);
  EXPECT_EQ(team_.enqueue(sum(between, all), stream_), Status::ok);
  port::Graph* const first = streams().end_capture(stream_).value();
  ASSERT_EQ(streams().begin_capture(stream_), Status::ok);
  EXPECT_EQ(team_.enqueue(allreduce(Buffer(other), DataType::i32, ReduceOp::max), stream_), Status::ok);
  EXPECT_EQ(copy(all, given), Status::ok);
  port::Graph* const second = streams().end_capture(stream_).value();
  const int rounds = test::effort(1000, 50);
  for (int round = 0; round < rounds; ++round) {
    const bool changes = round % 10 == 0;
    if (changes) {
      ASSERT_EQ(stream_.synchronize(), Status::ok);
      set(given, round + team_.rank());
      set(other, round + team_.rank());
    }
    ASSERT_EQ(streams().launch(first, stream_), Status::ok);
    if (round % 3 == 0) {
      ASSERT_EQ(streams().launch(second, stream_), Status::ok);
    }
    if (!changes) continue;
    ASSERT_EQ(stream_.synchronize(), Status::ok);
    ASSERT_EQ(team_.fault(), "");
    const std::int32_t sum_of_all = n * round + n * (n - 1) / 2;
    ASSERT_EQ(get(total), sum_of_all) << round;
    ASSERT_EQ(get(all), n * sum_of_all) << round;
    ASSERT_EQ(get(other), round + (round % 3 == 0 ? n - 1 : team_.rank())) << round;
  }
  ASSERT_EQ(stream_.synchronize(), Status::ok);
  EXPECT_EQ(team_.fault(), "");
  streams().destroy_graph(first);
  streams().destroy_graph(second);
}

/// Two teams of the same members, each with a stream and an order of its own.
TEST_F(Graphs, two_teams_are_apart) {
  Team other = Team::world(job());
  ASSERT_TRUE(other.prepare_streams().ok());
  Stream stream = job().device().create_stream();
  Memory a = device(4000), b = device(4000);
  set(a, 1);
  set(b, 2);
  for (int i = 0; i < 3; ++i) {
    if (team_.rank() % 2 == 0) {
      ASSERT_EQ(team_.enqueue(sum(a, a), stream_), Status::ok);
      ASSERT_EQ(other.enqueue(sum(b, b), stream), Status::ok);
    } else {
      ASSERT_EQ(other.enqueue(sum(b, b), stream), Status::ok);
      ASSERT_EQ(team_.enqueue(sum(a, a), stream_), Status::ok);
    }
  }
  ASSERT_EQ(stream_.synchronize(), Status::ok);
  ASSERT_EQ(stream.synchronize(), Status::ok);
  const int n = team_.size();
  EXPECT_EQ(get(a), n * n * n);
  EXPECT_EQ(get(b), 2 * n * n * n);
}

TEST_F(Graphs, what_kernels_do_not_do_is_refused_and_a_right_call_may_follow) {
  Memory memory = device(64);
  std::vector<std::int32_t> pageable(16, 1);
  const Buffer host(pageable.data(), 64, MemoryKind::host);
  EXPECT_EQ(team_.enqueue(allreduce(host, DataType::i32, ReduceOp::sum), stream_), Status::wrong_kind);
  EXPECT_EQ(team_.enqueue(sum(memory, memory), StreamHandle{}), Status::invalid_argument);
  EXPECT_EQ(team_.enqueue(allreduce(Buffer(memory), DataType::i32_i32, ReduceOp::min_place), stream_),
            Status::not_supported);
  EXPECT_EQ(team_.enqueue(allreduce(Buffer(memory.data(), 128, memory.kind()), DataType::i32, ReduceOp::sum), stream_),
            Status::invalid_argument)
      << "it is larger than its memory";
  EXPECT_EQ(team_.run(allreduce(Buffer(memory.data(), 128, memory.kind()), DataType::i32, ReduceOp::sum)).status,
            Status::invalid_argument);
  EXPECT_EQ(team_.enqueue(broadcast(memory, team_.size()), stream_), Status::invalid_argument);
  EXPECT_EQ(team_.explain_on_stream(broadcast(memory, team_.size())), "");
  Team unprepared = Team::world(job());
  EXPECT_EQ(unprepared.enqueue(barrier(), stream_), Status::invalid_argument);
  set(memory, 3);
  EXPECT_EQ(team_.enqueue(sum(memory, memory), stream_), Status::ok);
  ASSERT_EQ(stream_.synchronize(), Status::ok);
  EXPECT_EQ(get(memory), 3 * team_.size());
}

TEST_F(Graphs, pinned_memory_is_reached_too) {
  Memory pinned = job().allocate(MemoryKind::pinned, 40'000);
  set(pinned, 5);
  ASSERT_EQ(team_.enqueue(sum(pinned, pinned), stream_), Status::ok);
  ASSERT_EQ(stream_.synchronize(), Status::ok);
  EXPECT_EQ(get(pinned), 5 * team_.size());
}

}  // namespace
}  // namespace brant
