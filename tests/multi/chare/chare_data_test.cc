// Runs as every rank of a job (`brant run -n N`): data arguments between real processes over the real network, in host
// memory, or in that of the emulated device or the GPU if BRANT_GPU says so.
#include <array>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "brant/chare.h"
#include "core/engine.h"
#include "support/effort.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::job;

std::vector<int> ramp(std::size_t count, int start) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), start);
  return values;
}
Memory filled(MemoryKind kind, const std::vector<int>& values) {
  Memory memory = job().allocate(kind, values.size() * sizeof(int));
  job().copy(memory, std::span(values));
  return memory;
}
/// Counts what differs from a ramp.
int differences(ConstBuffer buffer, int start) {
  std::vector<int> values(buffer.bytes / sizeof(int));
  job().copy(std::span(values), buffer);
  int different = 0;
  for (const int value : values) different += value != start++ ? 1 : 0;
  return different;
}

class Block : public Chare<Block> {
 public:
  void halo(DeviceData face, int start) {
    faults_ += face.owned() ? 1 : differences(face, start);
    ++calls_;
  }
  Buffer post(Post<&Block::halo>, const DeviceMeta& face, int) {
    if (ghost_.bytes() < face.bytes) ghost_ = chares().runtime().allocate(chares().runtime().device_kind(), face.bytes);
    return ghost_;
  }
  void give(const DeviceData& data, int start) {
    faults_ += differences(data, start);
    ++calls_;
  }
  void table(HostData<int> items, int start) {
    for (const int item : items.items()) faults_ += item != start++ ? 1 : 0;
  }
  /// Passes a buffer on to the next element, from memory it was given.
  Task<int> around(DeviceData data, int left) {
    if (left == 0) co_return differences(data, 5);
    const int next = (index()[0] + 1) % this_array().extent()[0];
    co_return co_await this_array()[next].ask<&Block::around>(device(data), left - 1);
  }
  int faults() { return faults_; }
  int calls() { return calls_; }

 private:
  Memory ghost_;
  int faults_ = 0;
  int calls_ = 0;
};

Task<void> sizes(Chares& chares) {
  const auto blocks = create_array<Block>(chares, 2 * chares.size(), Placement::round_robin());
  for (std::size_t count = 1; count <= 3'000'000; count = count * 6 + 1) {
    Memory device_source = filled(job().device_kind(), ramp(count, 3));
    const std::vector<int> host_source = ramp(count, 4);
    const std::span<const int> host_view(host_source);
    for (int i = 0; i < 2 * chares.size(); ++i) {
      co_await blocks[i].ask<&Block::halo>(device(device_source), 3);
      co_await blocks[i].ask<&Block::give>(device(device_source), 3);
      co_await blocks[i].ask<&Block::table>(no_copy(host_view), 4);
    }
  }
  for (int i = 0; i < 2 * chares.size(); ++i) {
    const int faults = co_await blocks[i].ask<&Block::faults>();
    EXPECT_EQ(faults, 0) << i;
  }
}
/// A column of a matrix lands in another column of another matrix.
class Column : public Chare<Column> {
 public:
  static Shape of(std::size_t column, std::size_t rows) {
    const ShapeDim dim{.count = rows, .stride = 9 * sizeof(int)};
    return *Shape::strided(column * sizeof(int), sizeof(int), {&dim, 1});
  }
  int take(DeviceData matrix, std::size_t rows, std::size_t from) {
    std::vector<int> values(9 * rows);
    job().copy(std::span(values), matrix);
    int different = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      different += values[9 * row + 4] != static_cast<int>(9 * row + from) ? 1 : 0;
    }
    return different;
  }
  Landing post(Post<&Column::take>, const DeviceMeta&, std::size_t rows, std::size_t) {
    ghost_ = job().allocate(job().device_kind(), 9 * rows * sizeof(int));
    return {ghost_, of(4, rows)};
  }

 private:
  Memory ghost_;
};
Task<void> shapes(Chares& chares) {
  const auto columns = create_array<Column>(chares, 2 * chares.size(), Placement::round_robin());
  for (std::size_t rows = 1; rows <= 300'000; rows = rows * 8 + 1) {
    Memory source = filled(job().device_kind(), ramp(9 * rows, 0));
    for (int i = 0; i < 2 * chares.size(); ++i) {
      const auto from = static_cast<std::size_t>(i % 9);
      const int different = co_await columns[i].ask<&Column::take>(device(source, Column::of(from, rows)), rows, from);
      EXPECT_EQ(different, 0) << rows << " rows to " << i;
    }
  }
}
TEST(ChareData, in_a_shape_lands_in_another_shape) {
  Chares chares(job());
  EXPECT_EQ(chares.run(shapes(chares)), 0) << chares.failure();
}

TEST(ChareData, of_all_sizes_lands_where_it_should) {
  Chares chares(job());
  EXPECT_EQ(chares.run(sizes(chares)), 0) << chares.failure();
}

Task<void> stream(Chares& chares) {
  constexpr int kCalls = test::effort(1500, 500);
  const auto blocks = create_array<Block>(chares, chares.size(), Placement::round_robin());
  Memory source = filled(job().device_kind(), ramp(2000, 3));
  for (int rank = 0; rank < chares.size(); ++rank) {
    std::vector<Future<void>> done;
    for (int i = 0; i < kCalls; ++i) done.push_back(blocks[rank].ask<&Block::give>(device(source), 3));
    for (Future<void>& one : done) co_await one;
    const int faults = co_await blocks[rank].ask<&Block::faults>();
    EXPECT_EQ(faults, 0);
  }
}
TEST(ChareData, many_at_once_are_held_back_and_arrive) {
  Chares chares(job());
  EXPECT_EQ(chares.run(stream(chares)), 0) << chares.failure();
}

Task<void> ring(Chares& chares) {
  const auto blocks = create_array<Block>(chares, 2 * chares.size(), Placement::round_robin());
  Memory source = filled(job().device_kind(), ramp(30'000, 5));
  const int different = co_await blocks[0].ask<&Block::around>(device(source), 20);
  EXPECT_EQ(different, 0);
}
TEST(ChareData, that_was_given_may_be_passed_on) {
  Chares chares(job());
  EXPECT_EQ(chares.run(ring(chares)), 0) << chares.failure();
}

Task<void> to_all(Chares& chares) {
  const auto blocks = create_array<Block>(chares, 3 * chares.size(), Placement::block());
  Memory source = filled(job().device_kind(), ramp(50'000, 3));
  for (int i = 0; i < 10; ++i) {
    Promise<ConstBuffer> first, second;
    Future<ConstBuffer> halo_free = first.future(), give_free = second.future();
    blocks.call<&Block::halo>(device(source, std::move(first)), 3);
    blocks.call<&Block::give>(device(source, std::move(second)), 3);
    static_cast<void>(co_await halo_free);
    static_cast<void>(co_await give_free);
  }
  for (int i = 0; i < 3 * chares.size(); ++i) {
    const int faults = co_await blocks[i].ask<&Block::faults>();
    EXPECT_EQ(faults, 0) << i;
  }
  co_await sleep_for(job().worker(), std::chrono::milliseconds(200));  // calls may be overtaken by these questions
}
TEST(ChareData, of_a_broadcast_reaches_all) {
  Chares chares(job());
  EXPECT_EQ(chares.run(to_all(chares)), 0) << chares.failure();
}

/// Sections whose tree has the caller's rank in it and not, several members in a process and one.
Task<void> to_sections(Chares& chares) {
  const auto blocks = create_array<Block>(chares, 3 * chares.size(), Placement::round_robin());
  const int last = 3 * chares.size() - 1;
  const std::vector<Section<Block>> sections{
      make_section(chares, blocks, [](const Index<1>&) { return true; }),
      make_section(chares, blocks, std::vector<Index<1>>{{last}}),
      make_section(chares, blocks, [&](const Index<1>& at) { return at[0] % chares.size() != 0; }),
  };
  for (std::size_t count = 10; count <= 2'000'000; count = count * 50) {
    Memory source = filled(job().device_kind(), ramp(count, 3));
    for (const Section<Block>& section : sections) {
      Promise<ConstBuffer> first, second;
      Future<ConstBuffer> halo_free = first.future(), give_free = second.future();
      section.call<&Block::halo>(device(source, std::move(first)), 3);
      section.call<&Block::give>(device(source, std::move(second)), 3);
      const ConstBuffer free = co_await halo_free;
      EXPECT_EQ(free.data, source.data());
      static_cast<void>(co_await give_free);
    }
    co_await chares.quiescence();
  }
  int calls = 0;
  for (int i = 0; i <= last; ++i) {
    const int faults = co_await blocks[i].ask<&Block::faults>();
    EXPECT_EQ(faults, 0) << i;
    calls += co_await blocks[i].ask<&Block::calls>();
  }
  EXPECT_EQ(calls, 2 * 4 * (3 * chares.size() + 1 + 3 * (chares.size() - 1)));
}
TEST(ChareData, of_a_call_of_a_section_reaches_its_members) {
  Chares chares(job());
  EXPECT_EQ(chares.run(to_sections(chares)), 0) << chares.failure();
}

/// Faces fly between all elements until one of them has had enough.
class Juggler : public Chare<Juggler> {
 public:
  void begin() {
    face_ = filled(job().device_kind(), ramp(500, 3));
    for (int i = 0; i < 4; ++i) pass_on(i);
  }
  void face(const DeviceData&, int step) {
    if (index()[0] == 1 && ++faces_ == 40) return chares().exit(7);
    pass_on(step + 1);
  }
  Buffer post(Post<&Juggler::face>, const DeviceMeta& face, int step) {
    if (step % 3 == 0) return {};  // the runtime's memory, at times
    Memory& ghost = ghosts_[static_cast<std::size_t>(step) % ghosts_.size()];
    if (ghost.bytes() < face.bytes) ghost = job().allocate(job().device_kind(), face.bytes);
    return ghost;
  }

 private:
  void pass_on(int step) {
    const int elements = this_array().extent()[0];
    this_array()[(index()[0] + 1 + step % (elements - 1)) % elements].call<&Juggler::face>(device(face_), step);
  }
  Memory face_;
  std::array<Memory, 5> ghosts_;
  int faces_ = 0;
};

Task<void> juggle(Chares& chares) {
  create_array<Juggler>(chares, 3 * chares.size(), Placement::round_robin()).call<&Juggler::begin>();
  co_await chares.until_exit();
}
TEST(ChareData, on_its_way_when_a_program_is_dropped_is_read_before_its_source_goes) {
  const std::uint64_t before = job().worker().engine().counters().failures.read();
  for (int program = 0; program < 30; ++program) {
    Chares chares(job());
    EXPECT_EQ(chares.run(juggle(chares)), 7) << chares.failure();
  }
  EXPECT_EQ(job().worker().engine().counters().failures.read(), before);
}

/// A ring of chares, several in every process, each with a channel to its right and to its left.
class Member : public Chare<Member> {
 public:
  Task<int> exchange(int rounds, std::size_t count) {
    const int members = this_array().extent()[0];
    const int right = (index()[0] + 1) % members, left = (index()[0] + members - 1) % members;
    Future<Channel> right_opening = open_channel(*this, this_array()[right]);
    Future<Channel> left_opening = open_channel(*this, this_array()[left]);
    Channel to_right = co_await right_opening, to_left = co_await left_opening;
    const MemoryKind kind = job().device_kind();
    Memory mine = filled(kind, ramp(count, index()[0])), from_left = job().allocate(kind, count * sizeof(int));
    Memory from_right = job().allocate(kind, count * sizeof(int));
    int faults = 0;
    for (int round = 0; round < rounds; ++round) {
      Operation coming_left = to_left.recv(from_left), coming_right = to_right.recv(from_right);
      Operation going_left = to_left.send(mine), going_right = to_right.send(mine);
      const OpResult from_there = co_await coming_left, from_here = co_await coming_right;
      faults += from_there.ok() && from_here.ok() ? 0 : 1;
      faults += differences(from_left, left) + differences(from_right, right);
      EXPECT_TRUE((co_await going_left).ok());
      EXPECT_TRUE((co_await going_right).ok());
    }
    co_return faults;
  }
};

Task<void> ring_of_channels(Chares& chares) {
  const auto members = create_array<Member>(chares, 3 * chares.size(), Placement::block());
  for (const std::size_t count : std::array<std::size_t, 4>{2, 3000, 100'000, 500'000}) {
    std::vector<Future<int>> done;
    for (int i = 0; i < 3 * chares.size(); ++i) done.push_back(members[i].ask<&Member::exchange>(5, count));
    for (Future<int>& one : done) {
      const int faults = co_await one;
      EXPECT_EQ(faults, 0) << count;
    }
  }
}
TEST(ChareChannels, within_and_between_processes_carry_both_directions_at_once) {
  Chares chares(job());
  EXPECT_EQ(chares.run(ring_of_channels(chares)), 0) << chares.failure();
}

}  // namespace
}  // namespace brant
