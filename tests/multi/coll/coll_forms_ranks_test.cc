// Runs as every rank of a job (`brant run -n N`): collectives whose blocks differ, those of neighbours, prepared calls,
// and buffers that others read where they are.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/team.h"
#include "support/job_runtime.h"
#include "support/own_host.h"
#include "support/shared_host.h"

namespace brant {
namespace {

using test::job;
using Bytes = std::vector<std::uint8_t>;
using Sizes = std::vector<std::uint64_t>;

// NOLINTNEXTLINE(bugprone-throwing-static-initialization): it ends the program where it throws
[[maybe_unused]] const bool g_own_host = std::getenv("BRANT_TEST_OWN_HOSTS") != nullptr && test::become_own_host();
/// Or several processes are one host.
test::SharedHost g_shared_host;
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): it ends the program where it throws
[[maybe_unused]] const bool g_pairs = g_shared_host.join_if_told();

template <typename T>
Buffer buffer_of(std::vector<T>& values) {
  return {values.data(), values.size() * sizeof(T), MemoryKind::host};
}
template <typename T>
ConstBuffer buffer_of(const std::vector<T>& values) {
  return {values.data(), values.size() * sizeof(T), MemoryKind::host};
}

/// What `from` gives to `to`.
Bytes block(int from, int to, std::uint64_t bytes) {
  Bytes values(bytes);
  for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<std::uint8_t>(i * 7 + from * 31 + to * 5 + 1);
  return values;
}
void append(Bytes& all, const Bytes& more) { all.insert(all.end(), more.begin(), more.end()); }

class Forms : public testing::TestWithParam<TeamWay> {
 protected:
  Forms() : team_(Team::world(job(), {.patience = std::chrono::seconds(60), .way = GetParam()})) {}

  [[nodiscard]] int self() const { return team_.rank(); }
  [[nodiscard]] int size() const { return team_.size(); }
  /// By turns the call that waits, the operation, and one that was prepared.
  void carry_out(const Collective& call, const std::string& what) {
    OpResult result;
    if (++calls_ % 3 == 0) {
      result = team_.run(call);
    } else if (calls_ % 3 == 1) {
      Operation operation = team_.start(call);
      result = job().wait_for(std::chrono::seconds(60), operation);
    } else {
      result = team_.run(team_.prepare(call));
    }
    ASSERT_TRUE(result.ok()) << what << ": " << status_name(result.status) << " " << team_.fault();
  }

  Team team_;
  int calls_ = 0;
};

constexpr std::uint64_t kUnits[] = {0, 1, 40, 100'000};

std::uint64_t bytes_between(int from, int to, std::uint64_t unit) {
  return unit * static_cast<std::uint64_t>((from * 3 + to) % 4);
}

TEST_P(Forms, alltoallv_moves_blocks_that_only_their_ends_know) {
  for (const std::uint64_t unit : kUnits) {
    Bytes in, expected;
    Sizes gives, gets;
    for (int m = 0; m < size(); ++m) {
      gives.push_back(bytes_between(self(), m, unit));
      gets.push_back(bytes_between(m, self(), unit));
      append(in, block(self(), m, gives.back()));
      append(expected, block(m, self(), gets.back()));
    }
    Bytes out(expected.size());
    carry_out(alltoallv(buffer_of(std::as_const(in)), gives, buffer_of(out), gets), "alltoallv");
    ASSERT_EQ(out, expected) << unit;
  }
}

TEST_P(Forms, alltoall_in_place) {
  for (const std::uint64_t bytes : {1u, 40u, 70'000u}) {
    Bytes data, expected, symmetric, back;
    Sizes sizes;
    for (int m = 0; m < size(); ++m) {
      append(data, block(self(), m, bytes));
      append(expected, block(m, self(), bytes));
      sizes.push_back(bytes * static_cast<std::uint64_t>(m + self() + 1));
      append(symmetric, block(self(), m, sizes.back()));
      append(back, block(m, self(), sizes.back()));
    }
    carry_out(alltoall({}, buffer_of(data)), "alltoall in place");
    ASSERT_EQ(data, expected) << bytes;
    carry_out(alltoallv({}, {}, buffer_of(symmetric), sizes), "alltoallv in place");
    ASSERT_EQ(symmetric, back) << bytes;
  }
}

TEST_P(Forms, gatherv_and_scatterv_have_sizes_at_the_root_alone) {
  for (const std::uint64_t unit : kUnits) {
    for (int root = 0; root < size(); ++root) {
      const bool at_root = root == self();
      Sizes sizes;
      Bytes all;
      for (int m = 0; m < size(); ++m) {
        sizes.push_back(bytes_between(m, root, unit));
        append(all, block(m, root, sizes.back()));
      }
      const Bytes own = block(self(), root, sizes[static_cast<std::size_t>(self())]);
      Bytes gathered(at_root ? all.size() : 0), back(own.size());
      if (!at_root) sizes.clear();
      carry_out(gatherv(buffer_of(own), buffer_of(gathered), sizes, root), "gatherv");
      if (at_root) {
        ASSERT_EQ(gathered, all) << unit;
      }
      carry_out(scatterv(at_root ? buffer_of(std::as_const(all)) : ConstBuffer(), sizes, buffer_of(back), root),
                "scatterv");
      ASSERT_EQ(back, own) << unit << " from " << root;
    }
  }
}

TEST_P(Forms, reduce_scatter_with_blocks_of_different_sizes) {
  for (const std::uint64_t unit : {1u, 5u, 60'000u}) {
    Sizes bytes;
    std::size_t first = 0, count = 0;
    for (int m = 0; m < size(); ++m) {
      if (m == self()) first = count;
      bytes.push_back(4 * unit * static_cast<std::uint64_t>(m % 3));
      count += bytes.back() / 4;
    }
    std::vector<std::int32_t> in(count), expected;
    for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<std::int32_t>(i) * (self() + 1);
    const std::size_t own = bytes[static_cast<std::size_t>(self())] / 4;
    for (std::size_t i = first; i < first + own; ++i)
      expected.push_back(static_cast<std::int32_t>(i) * size() * (size() + 1) / 2);
    std::vector<std::int32_t> out(own);
    carry_out(reduce_scatter(buffer_of(std::as_const(in)), buffer_of(out), bytes, DataType::i32, ReduceOp::sum),
              "reduce_scatter with sizes");
    ASSERT_EQ(out, expected) << unit;
    carry_out(reduce_scatter({}, buffer_of(in), bytes, DataType::i32, ReduceOp::sum), "the same in place");
    in.resize(own);
    ASSERT_EQ(in, expected) << unit;
  }
}

/// Everybody gives to the next one and, twice, to the one after it; on few members that is one with itself.
TEST_P(Forms, neighbours_exchange_along_edges) {
  const int n = size();
  const std::vector<std::int32_t> destinations = {(self() + 1) % n, (self() + 2) % n, (self() + 2) % n};
  const std::vector<std::int32_t> sources = {(self() + n - 1) % n, (self() + 2 * n - 2) % n, (self() + 2 * n - 2) % n};
  const Neighbours edges{sources, destinations};
  for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{200'000}}) {
    Bytes expected, gives, gets;
    const Bytes own = block(self(), 0, bytes);
    for (int edge = 0; edge < 3; ++edge) {
      append(expected, block(sources[static_cast<std::size_t>(edge)], 0, bytes));
      append(gives, block(self(), 10 + edge, bytes));
    }
    Bytes out(expected.size());
    carry_out(neighbour_allgather(buffer_of(own), buffer_of(out), edges), "neighbour_allgather");
    ASSERT_EQ(out, expected) << bytes;
    // With one or two members all or some edges join the same two: the first in one list is the first in the other.
    std::vector<int> used(static_cast<std::size_t>(n), 0);
    for (const std::int32_t source : sources) {
      std::vector<int> to_me;
      const int towards[3] = {(source + 1) % n, (source + 2) % n, (source + 2) % n};
      for (int edge = 0; edge < 3; ++edge) {
        if (towards[edge] == self()) to_me.push_back(edge);
      }
      append(gets,
             block(source, 10 + to_me[static_cast<std::size_t>(used[static_cast<std::size_t>(source)]++)], bytes));
    }
    Bytes got(gets.size());
    carry_out(neighbour_alltoall(buffer_of(std::as_const(gives)), buffer_of(got), edges), "neighbour_alltoall");
    ASSERT_EQ(got, gets) << bytes;
  }
}

/// A line of members: those at its ends have one neighbour, and all blocks differ.
TEST_P(Forms, neighbours_with_blocks_of_different_sizes) {
  std::vector<std::int32_t> beside;
  if (self() > 0) beside.push_back(self() - 1);
  if (self() + 1 < size()) beside.push_back(self() + 1);
  const Neighbours edges{beside, beside};
  for (const std::uint64_t unit : kUnits) {
    Sizes gives, gets, wholes;
    Bytes in, expected, gathered;
    for (const int m : beside) {
      gives.push_back(bytes_between(self(), m, unit));
      gets.push_back(bytes_between(m, self(), unit));
      wholes.push_back(unit * static_cast<std::uint64_t>(m));
      append(in, block(self(), m, gives.back()));
      append(expected, block(m, self(), gets.back()));
      append(gathered, block(m, 0, wholes.back()));
    }
    Bytes out(expected.size()), all(gathered.size());
    carry_out(neighbour_alltoallv(buffer_of(std::as_const(in)), gives, buffer_of(out), gets, edges), "alltoallv");
    ASSERT_EQ(out, expected) << unit;
    const Bytes own = block(self(), 0, unit * static_cast<std::uint64_t>(self()));
    carry_out(neighbour_allgatherv(buffer_of(own), buffer_of(all), wholes, edges), "allgatherv");
    ASSERT_EQ(all, gathered) << unit;
  }
  carry_out(barrier(), "a call of all after those of neighbours");
}

TEST_P(Forms, a_prepared_call_is_planned_once_and_made_often) {
  double own = 0, sum = 0;
  const PreparedCall call =
      team_.prepare(allreduce(std::span<const double>(&own, 1), std::span(&sum, 1), ReduceOp::sum));
  for (int i = 0; i < 100; ++i) {
    own = self() + i;
    if (i % 2 == 0) {
      ASSERT_TRUE(team_.run(call).ok());
    } else {
      Operation operation = team_.start(call);
      ASSERT_TRUE(job().wait_for(std::chrono::seconds(60), operation).ok());
    }
    ASSERT_EQ(sum, i * size() + size() * (size() - 1) / 2.0);
  }
  EXPECT_THROW(static_cast<void>(team_.prepare(broadcast(Buffer(&sum, 8), size()))), Error);
  Team other = Team::world(job());
  EXPECT_EQ(other.run(call).status, Status::invalid_argument);
}

/// What does not fit is refused here alone.
TEST_P(Forms, sizes_that_do_not_fit_are_refused) {
  Bytes data(64);
  const Sizes few(static_cast<std::size_t>(size()) + 1, 8), much(static_cast<std::size_t>(size()), 1000);
  const std::vector<std::int32_t> nobody = {size()};
  for (const Sizes* sizes : {&few, &much}) {
    EXPECT_EQ(team_.run(alltoallv(buffer_of(std::as_const(data)), *sizes, {}, *sizes)).status,
              Status::invalid_argument);
    EXPECT_EQ(team_.run(gatherv(buffer_of(std::as_const(data)), buffer_of(data), *sizes, self())).status,
              Status::invalid_argument);
  }
  EXPECT_EQ(team_.run(neighbour_allgather(buffer_of(std::as_const(data)), {}, {{}, nobody})).status,
            Status::invalid_argument);
  carry_out(barrier(), "a right call");
}

INSTANTIATE_TEST_SUITE_P(Ways, Forms, testing::Values(TeamWay::automatic, TeamWay::messages),
                         [](const auto& way) { return way.param == TeamWay::automatic ? "automatic" : "messages"; });

/// Vectors in memory that other processes can map, or not.
class Vectors {
 public:
  Vectors(std::size_t count, bool mappable) : bytes_(count * sizeof(float)) {
    if (mappable) {
      in_ = job().allocate(MemoryKind::host, bytes_);
      out_ = job().allocate(MemoryKind::host, bytes_);
    } else {
      private_.resize(2 * count);
    }
    in = mappable ? static_cast<float*>(in_.data()) : private_.data();
    out = mappable ? static_cast<float*>(out_.data()) : private_.data() + count;
  }
  [[nodiscard]] ConstBuffer gives(std::size_t parts = 1) const { return {in, bytes_ / parts, MemoryKind::host}; }
  [[nodiscard]] Buffer gets(std::size_t parts = 1) const { return {out, bytes_ / parts, MemoryKind::host}; }

  float* in = nullptr;
  float* out = nullptr;

 private:
  std::size_t bytes_;
  Memory in_, out_;
  std::vector<float> private_;
};

float given(int member, std::size_t i, int call) {
  // Its sum depends on the order.
  return static_cast<float>((i * 2654435761u + static_cast<unsigned>(member * 977 + call)) % 1000) * 1e5f +
         static_cast<float>(member) * 0.37f;
}

float sum_at(int members, std::size_t i, int call) {
  float sum = given(0, i, call);
  for (int m = 1; m < members; ++m) sum += given(m, i, call);
  return sum;
}

class InPlace : public testing::Test {
 protected:
  static constexpr std::size_t kCount = 3 * 64 * 1024 + 12;  // whole blocks for 1 to 4 members

  InPlace() : team_(Team::world(job(), {.patience = std::chrono::seconds(60)})) {}

  void fill(Vectors& vectors, int call) const {
    for (std::size_t i = 0; i < kCount; ++i) vectors.in[i] = given(team_.rank(), i, call);
    std::fill(vectors.out, vectors.out + kCount, -1.0f);
  }
  std::string_view carry_out(const Collective& call) {
    const OpResult result = team_.run(call);
    EXPECT_TRUE(result.ok()) << status_name(result.status) << " " << team_.fault();
    return team_.journal().back().algorithm;
  }
  /// Word of memory that is to be mapped travels with progress.
  bool is_read(const Collective& call) {
    for (int i = 0; i < 1000; ++i) {
      if (carry_out(call) == "reads") return true;
      static_cast<void>(job().worker().progress());
    }
    return false;
  }

  Team team_;
};

TEST_F(InPlace, mappable_buffers_are_read_where_they_are) {
  const std::size_t n = static_cast<std::size_t>(team_.size()), block = kCount / n;
  const auto self = static_cast<std::size_t>(team_.rank());
  const bool shares = team_.explain(barrier()) == "lines";
  Vectors vectors(kCount, true);
  const ConstBuffer in = vectors.gives();
  const Buffer out = vectors.gets();
  fill(vectors, 0);
  if (shares) {
    ASSERT_TRUE(is_read(allreduce(in, out, DataType::f32, ReduceOp::sum)));
  }
  for (int call = 1; call < 8; ++call) {
    fill(vectors, call);
    carry_out(allreduce(in, out, DataType::f32, ReduceOp::sum));
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(vectors.out[i], sum_at(team_.size(), i, call)) << i;
    fill(vectors, call);
    carry_out(reduce_scatter(in, vectors.gets(n), DataType::f32, ReduceOp::sum));
    for (std::size_t i = 0; i < block; ++i)
      ASSERT_EQ(vectors.out[i], sum_at(team_.size(), self * block + i, call)) << i;
    fill(vectors, call);
    carry_out(alltoall(in, out));
    for (std::size_t i = 0; i < kCount; ++i)
      ASSERT_EQ(vectors.out[i], given(static_cast<int>(i / block), self * block + i % block, call)) << i;
    fill(vectors, call);
    carry_out(allgather(vectors.gives(n), out));
    for (std::size_t i = 0; i < kCount; ++i)
      ASSERT_EQ(vectors.out[i], given(static_cast<int>(i / block), i % block, call)) << i;
    fill(vectors, call);
    carry_out(scan(in, out, DataType::f32, ReduceOp::sum));
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(vectors.out[i], sum_at(team_.rank() + 1, i, call)) << i;
    const int root = call % team_.size();
    fill(vectors, call);
    carry_out(reduce_to(in, out, DataType::f32, ReduceOp::sum, root));
    for (std::size_t i = 0; team_.rank() == root && i < kCount; ++i)
      ASSERT_EQ(vectors.out[i], sum_at(team_.size(), i, call)) << i;
    fill(vectors, call);
    carry_out(scatter(in, vectors.gets(n), root));
    for (std::size_t i = 0; i < block; ++i) ASSERT_EQ(vectors.out[i], given(root, self * block + i, call)) << i;
    fill(vectors, call);
    carry_out(gather(vectors.gives(n), out, root));
    for (std::size_t i = 0; team_.rank() == root && i < kCount; ++i)
      ASSERT_EQ(vectors.out[i], given(static_cast<int>(i / block), i % block, call)) << i;
    fill(vectors, call);
    if (team_.rank() == root) std::copy(vectors.in, vectors.in + kCount, vectors.out);
    carry_out(broadcast(out, root));
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(vectors.out[i], given(root, i, call)) << i;
    // In place, and then scans, whose gifts are overwritten at once.
    fill(vectors, call);
    carry_out(allreduce(Buffer(vectors.in, kCount * 4, MemoryKind::host), DataType::f32, ReduceOp::sum));
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(vectors.in[i], sum_at(team_.size(), i, call)) << i;
    fill(vectors, call);
    carry_out(scan({}, Buffer(vectors.in, kCount * 4, MemoryKind::host), DataType::f32, ReduceOp::sum));
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(vectors.in[i], sum_at(team_.rank() + 1, i, call)) << i;
  }
}

/// One member's memory cannot be mapped: all take the other way, with the same bits, and go on as before after it.
TEST_F(InPlace, members_with_memory_of_different_origin_agree) {
  Vectors mappable(kCount, true), own(kCount, false);
  std::mt19937 common(3);
  for (int call = 0; call < 40; ++call) {
    const auto who = static_cast<int>(common() % static_cast<unsigned>(2 * team_.size()));  // sometimes nobody
    Vectors& vectors = team_.rank() == who ? own : mappable;
    fill(vectors, call);
    const std::string_view way = carry_out(allreduce(vectors.gives(), vectors.gets(), DataType::f32, ReduceOp::sum));
    if (who < team_.size()) {
      EXPECT_NE(way, "reads");
    }
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(vectors.out[i], sum_at(team_.size(), i, call)) << i;
    static_cast<void>(job().worker().progress());
  }
}

/// Memory that was freed is not read any more, and what comes in its place is.
TEST_F(InPlace, memory_comes_and_goes) {
  for (int call = 0; call < 20; ++call) {
    Vectors vectors(kCount, true);
    for (int again = 0; again < 3; ++again) {
      fill(vectors, call);
      carry_out(allreduce(vectors.gives(), vectors.gets(), DataType::f32, ReduceOp::sum));
      for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(vectors.out[i], sum_at(team_.size(), i, call)) << i;
      static_cast<void>(job().worker().progress());
    }
  }
}

}  // namespace
}  // namespace brant
