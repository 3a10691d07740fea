// Data arguments that lie in shapes, at the caller's end, at the receiver's, or at both.
#include <algorithm>
#include <numeric>

#include "core/engine.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::JobOptions;
using test::Program;

constexpr int kRows = 60;
constexpr int kColumns = 37;

/// Column `column` of a matrix of ints.
Shape column_of(int column) {
  const ShapeDim rows{.count = kRows, .stride = kColumns * sizeof(int)};
  return *Shape::strided(static_cast<std::size_t>(column) * sizeof(int), sizeof(int), {&rows, 1});
}

std::vector<int> matrix(int start) {
  std::vector<int> values(static_cast<std::size_t>(kRows) * kColumns);
  std::iota(values.begin(), values.end(), start);
  return values;
}

std::vector<int> contents(Runtime& runtime, ConstBuffer buffer) {
  std::vector<int> values(buffer.bytes / sizeof(int));
  runtime.copy(std::span(values), buffer);
  return values;
}

/// How much differs from column `column` of `matrix(start)`.
int differences(std::span<const int> values, int start, int column) {
  int different = std::abs(static_cast<int>(values.size()) - kRows);
  for (int row = 0; row < std::min<int>(kRows, static_cast<int>(values.size())); ++row) {
    different += values[static_cast<std::size_t>(row)] != start + row * kColumns + column ? 1 : 0;
  }
  return different;
}

class Field : public Chare<Field> {
 public:
  explicit Field(int kind) : kind_(static_cast<MemoryKind>(kind)) {}

  int whole(DeviceData data, int start, int column) {
    return differences(contents(chares().runtime(), data), start, column);
  }

  /// Into column 5, whatever column it was; all others stay as they were.
  int ghost(DeviceData data, int start, int column) {
    EXPECT_EQ(data.data(), memory_.data());
    EXPECT_EQ(data.bytes(), memory_.bytes());
    const std::vector<int> values = contents(chares().runtime(), memory_);
    std::vector<int> landed;
    int different = 0;
    for (int at = 0; at < kRows * kColumns; ++at) {
      const int value = values[static_cast<std::size_t>(at)];
      if (at % kColumns == 5) {
        landed.push_back(value);
      } else {
        different += value != -1 - at ? 1 : 0;
      }
    }
    return different + differences(landed, start, column);
  }
  Landing post(Post<&Field::ghost>, const DeviceMeta& meta, int, int) {
    EXPECT_EQ(meta.bytes, kRows * sizeof(int));
    std::vector<int> before(static_cast<std::size_t>(kRows) * kColumns);
    for (int at = 0; at < kRows * kColumns; ++at) before[static_cast<std::size_t>(at)] = -1 - at;
    memory_ = chares().runtime().allocate(kind_, before.size() * sizeof(int));
    chares().runtime().copy(memory_, std::span(before));
    return {memory_, column_of(5)};
  }

  /// Two at once: the first where its shape says, the second in one run.
  int both(DeviceData first, DeviceData second, int start) {
    const std::vector<int> values = contents(chares().runtime(), first);
    std::vector<int> landed;
    for (int row = 0; row < kRows; ++row) landed.push_back(values[static_cast<std::size_t>(row * kColumns + 5)]);
    return differences(landed, start, 1) + differences(contents(chares().runtime(), second), start, 2);
  }
  std::array<Landing, 2> post(Post<&Field::both>, const DeviceMeta&, const DeviceMeta& second, int) {
    memory_ = chares().runtime().allocate(kind_, sizeof(int) * kRows * kColumns);
    other_ = chares().runtime().allocate(kind_, second.bytes + 16);
    return {Landing(memory_, column_of(5)), Landing(other_)};
  }

  void too_short(DeviceData) { ADD_FAILURE() << "must not run"; }
  Landing post(Post<&Field::too_short>, const DeviceMeta& meta) {
    memory_ = chares().runtime().allocate(kind_, meta.bytes);
    return {memory_, column_of(0)};
  }
  void other_size(DeviceData) { ADD_FAILURE() << "must not run"; }
  Landing post(Post<&Field::other_size>, const DeviceMeta& meta) {
    memory_ = chares().runtime().allocate(kind_, 2 * meta.bytes);
    return {memory_, Shape::contiguous(meta.bytes + 4)};
  }

 private:
  MemoryKind kind_;
  Memory memory_;
  Memory other_;
};

Task<void> columns(Chares& chares) {
  Runtime& runtime = chares.runtime();
  for (const MemoryKind from : {MemoryKind::host, runtime.device_kind()}) {
    for (const MemoryKind to : {MemoryKind::host, runtime.device_kind()}) {
      const auto fields =
          create_array<Field>(chares, 2 * chares.size(), Placement::round_robin(), static_cast<int>(to));
      for (int i = 0; i < 2 * chares.size(); ++i) {
        Memory source = runtime.allocate(from, sizeof(int) * kRows * kColumns);
        const std::vector<int> values = matrix(100 * i);
        runtime.copy(source, std::span(values));
        int different = co_await fields[i].ask<&Field::whole>(device(source, column_of(i)), 100 * i, i);
        EXPECT_EQ(different, 0);
        Promise<ConstBuffer> sent;
        Future<ConstBuffer> free = sent.future();
        different = co_await fields[i].ask<&Field::ghost>(device(source, column_of(7), std::move(sent)), 100 * i, 7);
        EXPECT_EQ(different, 0);
        const ConstBuffer again = co_await free;
        EXPECT_EQ(again.data, source.data());
        EXPECT_EQ(again.bytes, source.bytes());
        different =
            co_await fields[i].ask<&Field::both>(device(source, column_of(1)), device(source, column_of(2)), 100 * i);
        EXPECT_EQ(different, 0);
        // A list of runs, and what lies in one run behind the start.
        std::vector<ByteRun> runs;
        for (int row = 0; row < kRows; ++row) {
          runs.push_back({sizeof(int) * static_cast<std::size_t>(row * kColumns + 3), sizeof(int)});
        }
        different = co_await fields[i].ask<&Field::ghost>(device(source, *Shape::indexed(runs)), 100 * i, 3);
        EXPECT_EQ(different, 0);
      }
      for (int column : {0, kColumns - 1}) {
        Memory source = runtime.allocate(from, sizeof(int) * kRows * kColumns);
        const std::vector<int> values = matrix(9);
        runtime.copy(source, std::span(values));
        for (int i = 0; i < 2 * chares.size(); ++i) {
          const int different = co_await fields[i].ask<&Field::whole>(device(source, column_of(column)), 9, column);
          EXPECT_EQ(different, 0);
        }
      }
    }
  }
}
TEST(ShapedData, arrives_from_any_shape_in_any_shape) {
  for (const GpuChoice gpu : {GpuChoice::none, GpuChoice::emulated}) {
    Program program(test::with(test::ranks(1), false, gpu, false));
    EXPECT_EQ(program.run(columns), 0) << program.failure();
  }
}
TEST(ShapedData, arrives_over_every_path_while_messages_overtake_each_other) {
  for (const JobOptions& options : test::variants(test::reordering(3, 3))) {
    Program program(options);
    EXPECT_EQ(program.run(columns), 0) << program.failure();
  }
}
TEST(ShapedData, arrives_over_a_wire_that_repeats_refuses_and_delays) {
  for (const JobOptions& options : test::variants(test::faulty(5, 2))) {
    Program program(options);
    EXPECT_EQ(program.run(columns), 0) << program.failure();
  }
}

class Counter : public Chare<Counter> {
 public:
  void note(const DeviceData& data, int start, int column) {
    different_ += differences(contents(chares().runtime(), data), start, column);
    ++calls_;
  }
  int calls() { return calls_; }
  int different() { return different_; }

 private:
  int different_ = 0;
  int calls_ = 0;
};
Task<void> broadcast(Chares& chares) {
  Runtime& runtime = chares.runtime();
  const int elements = 2 * chares.size() + 1;
  const auto counters = create_array<Counter>(chares, elements, Placement::block());
  Memory source = runtime.allocate(runtime.device_kind(), sizeof(int) * kRows * kColumns);
  const std::vector<int> values = matrix(4);
  runtime.copy(source, std::span(values));
  for (int column = 0; column < 5; ++column) {
    Promise<ConstBuffer> sent;
    Future<ConstBuffer> free = sent.future();
    counters.call<&Counter::note>(device(source, column_of(column), std::move(sent)), 4, column);
    static_cast<void>(co_await free);
  }
  for (int i = 0; i < elements; ++i) {
    int calls = 0;
    while (calls < 5) calls = co_await counters[i].ask<&Counter::calls>();
    const int different = co_await counters[i].ask<&Counter::different>();
    EXPECT_EQ(different, 0);
  }
}
TEST(ShapedData, of_a_broadcast_is_packed_once_for_each_process) {
  for (const int ranks : {1, 3}) {
    for (const JobOptions& options : test::variants(test::reordering(7, ranks))) {
      Program program(options);
      EXPECT_EQ(program.run(broadcast), 0) << program.failure();
    }
  }
}

template <auto Method>
Task<void> refused(Element<Field> field, DeviceArgument argument, std::string text) {
  try {
    co_await field.ask<Method>(std::move(argument));
    ADD_FAILURE() << "no exception for " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}
Task<void> refusals(Chares& chares) {
  const auto fields = create_array<Field>(chares, 2, Placement::round_robin(), static_cast<int>(MemoryKind::host));
  const std::vector<int> values = matrix(0);
  const ConstBuffer all{std::span<const int>(values)};
  for (int i = 0; i < 2; ++i) {
    co_await refused<&Field::too_short>(fields[i], device(all, column_of(1)),
                                        "its post entry named a shape of 240 bytes that ends at byte 8736 of a landing "
                                        "of 240 bytes of host memory");
    co_await refused<&Field::other_size>(fields[i], device(all, column_of(1)), "named a shape of 244 bytes");
    const ConstBuffer part(values.data(), all.bytes / 2);
    try {
      fields[i].call<&Field::too_short>(device(part, column_of(1)));
      ADD_FAILURE() << "a shape beyond its buffer was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("Its shape ends at byte 8740: pass all of the memory"),
                std::string::npos)
          << error.what();
    }
    // The lane goes on.
    const int different = co_await fields[i].ask<&Field::whole>(device(all, column_of(2)), 0, 2);
    EXPECT_EQ(different, 0);
  }
}
TEST(ShapedData, that_does_not_fit_is_refused_and_the_lane_goes_on) {
  for (const JobOptions& options : test::variants(test::ranks(2))) {
    Program program(options);
    EXPECT_EQ(program.run(refusals), 0) << program.failure();
  }
}

}  // namespace
}  // namespace brant
