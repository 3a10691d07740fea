// Runs as every rank of a job (`brant run -n N`): every collective over shared memory and by messages, against what one
// process computes by itself.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/team.h"
#include "brant/device.h"
#include "core/engine.h"
#include "multi/coll/relocated.h"
#include "ops/am/messenger.h"
#include "support/effort.h"
#include "support/job_runtime.h"
#include "support/own_host.h"
#include "support/shared_host.h"

namespace brant {
namespace {

using test::job;

/// Before the runtime is opened: each process is a host of its own, so that teams reach over several.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): it ends the program where it throws
[[maybe_unused]] const bool g_own_host = std::getenv("BRANT_TEST_OWN_HOSTS") != nullptr && test::become_own_host();
/// Or several processes are one host.
test::SharedHost g_shared_host;
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): it ends the program where it throws
[[maybe_unused]] const bool g_pairs = g_shared_host.join_if_told();

/// What member `member` gives as element `index`: small whole numbers, so that sums of floats are exact too.
std::int64_t given(int member, std::size_t index, int salt) {
  return static_cast<std::int64_t>(
             (index * 7 + static_cast<std::size_t>(member) * 13 + static_cast<std::size_t>(salt)) % 11) +
         1;
}

template <typename T>
std::vector<T> gift(int member, std::size_t count, int salt) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(given(member, i, salt));
  return values;
}

template <typename T>
T combined(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::sum: return static_cast<T>(a + b);
    case ReduceOp::max: return std::max(a, b);
    default: return std::min(a, b);
  }
}

/// The combination of what members [0, `members`) give.
template <typename T>
std::vector<T> combined(ReduceOp op, int members, std::size_t count, int salt) {
  std::vector<T> total = gift<T>(0, count, salt);
  for (int m = 1; m < members; ++m) {
    const std::vector<T> next = gift<T>(m, count, salt);
    for (std::size_t i = 0; i < count; ++i) total[i] = combined(op, total[i], next[i]);
  }
  return total;
}

template <typename T>
Buffer buffer_of(std::vector<T>& values) {
  return {values.data(), values.size() * sizeof(T), MemoryKind::host};
}
template <typename T>
ConstBuffer buffer_of(const std::vector<T>& values) {
  return {values.data(), values.size() * sizeof(T), MemoryKind::host};
}

constexpr std::size_t kSizes[] = {0, 1, 7, 8, 48, 64, 4096 + 4, 65536, (std::size_t{1} << 20) + 12};

/// Where the buffers lie, and who carries the calls out.
enum class Placing { host, pinned, device, mixed, stream };
struct Form {
  TeamWay way = TeamWay::automatic;
  Placing placing = Placing::host;
};

class Collectives : public testing::TestWithParam<Form> {
 protected:
  Collectives() : team_(Team::world(job(), {.patience = std::chrono::seconds(60), .way = GetParam().way})) {}
  void SetUp() override {
    const bool with_device = GetParam().placing != Placing::host && GetParam().placing != Placing::pinned;
    if (with_device && job().device_kind() == MemoryKind::host) GTEST_SKIP() << "no device";
    if (GetParam().placing != Placing::stream) return;
    if (const OpResult prepared = team_.prepare_streams(); !prepared.ok()) {
      ASSERT_EQ(prepared.status, Status::not_supported);
      GTEST_SKIP() << "no devices that map each other's memory";
    }
    stream_ = job().device().create_stream();
  }

  [[nodiscard]] int self() const { return team_.rank(); }
  [[nodiscard]] int size() const { return team_.size(); }
  /// Of the next buffer: at each member and in each call another one, where they are mixed.
  [[nodiscard]] MemoryKind next_kind() {
    switch (GetParam().placing) {
      case Placing::host: return MemoryKind::host;
      case Placing::pinned: return MemoryKind::pinned;
      case Placing::mixed: break;
      default: return job().device_kind();
    }
    const MemoryKind kinds[] = {MemoryKind::host, MemoryKind::pinned, job().device_kind()};
    return kinds[static_cast<std::size_t>(kinds_++ * 7 + self()) % 3];
  }
  void carry_out(const Collective& given, const std::string& what) {
    const MemoryKind in = next_kind();
    test::Relocated moved(job(), given, in, next_kind());
    carry_out_there(moved.call(), what);
    if (!HasFatalFailure()) moved.bring_back();
  }
  /// By turns the call that waits and the operation; or a stream does it, if it can.
  void carry_out_there(const Collective& call, const std::string& what) {
    if (GetParam().placing == Placing::stream && !team_.explain_on_stream(call).empty()) {
      ASSERT_EQ(team_.enqueue(call, stream_), Status::ok) << what << ": " << team_.fault();
      ASSERT_EQ(stream_.synchronize(), Status::ok) << what;
      ASSERT_EQ(team_.fault(), "") << what;
      return;
    }
    if (++calls_ % 2 == 0) {
      const OpResult result = team_.run(call);
      ASSERT_TRUE(result.ok()) << what << ": " << status_name(result.status) << " " << team_.fault();
    } else {
      Operation operation = team_.start(call);
      const OpResult result = job().wait_for(std::chrono::seconds(60), operation);
      ASSERT_TRUE(result.ok()) << what << ": " << status_name(result.status) << " " << team_.fault();
    }
  }

  Team team_;
  Stream stream_;
  int calls_ = 0;
  int kinds_ = 0;
};

template <typename T>
std::string title(const char* name, std::size_t count, int root, bool in_place) {
  return std::string(name) + " of " + std::to_string(count) + " elements of " + std::to_string(sizeof(T)) +
         " bytes, root " + std::to_string(root) + (in_place ? ", in place" : "");
}

TEST_P(Collectives, broadcast_gives_all_what_the_root_has) {
  for (const std::size_t bytes : kSizes) {
    for (int root = 0; root < size(); ++root) {
      std::vector<std::uint8_t> data = gift<std::uint8_t>(root, bytes, 3);
      if (root != self()) std::fill(data.begin(), data.end(), std::uint8_t{0});
      carry_out(broadcast(buffer_of(data), root), title<std::uint8_t>("broadcast", bytes, root, true));
      ASSERT_EQ(data, gift<std::uint8_t>(root, bytes, 3)) << bytes << " from " << root;
    }
  }
}

template <typename T, typename CarryOut>
void try_reductions(int self, int size, CarryOut&& carry_out) {
  constexpr DataType kType = kDataTypeOf<T>;
  for (const std::size_t bytes : kSizes) {
    const std::size_t count = bytes / sizeof(T);
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
      for (const bool in_place : {false, true}) {
        const int salt = static_cast<int>(bytes % 5);
        const std::vector<T> own = gift<T>(self, count, salt), all = combined<T>(op, size, count, salt);
        std::vector<T> out = in_place ? own : std::vector<T>(count);
        const ConstBuffer in = in_place ? ConstBuffer(buffer_of(out)) : buffer_of(own);
        carry_out(allreduce(in, buffer_of(out), kType, op), title<T>("allreduce", count, 0, in_place));
        ASSERT_EQ(out, all) << title<T>("allreduce", count, 0, in_place);
        for (int root = 0; root < size; root += std::max(1, size - 1)) {
          std::vector<T> at_root = in_place ? own : std::vector<T>(count);
          const ConstBuffer gives = in_place ? ConstBuffer(buffer_of(at_root)) : buffer_of(own);
          carry_out(reduce_to(gives, buffer_of(at_root), kType, op, root), title<T>("reduce", count, root, in_place));
          if (root == self) {
            ASSERT_EQ(at_root, all) << title<T>("reduce", count, root, in_place);
          }
        }
        std::vector<T> before = in_place ? own : std::vector<T>(count);
        const ConstBuffer of_scan = in_place ? ConstBuffer(buffer_of(before)) : buffer_of(own);
        carry_out(scan(of_scan, buffer_of(before), kType, op), title<T>("scan", count, 0, in_place));
        ASSERT_EQ(before, combined<T>(op, self + 1, count, salt)) << title<T>("scan", count, 0, in_place);
      }
      std::vector<T> lower(count, T{77});
      const std::vector<T> own = gift<T>(self, count, 2);
      carry_out(exscan(buffer_of(own), buffer_of(lower), kType, op), title<T>("exscan", count, 0, false));
      ASSERT_EQ(lower, self == 0 ? std::vector<T>(count, T{77}) : combined<T>(op, self, count, 2));
    }
  }
}

TEST_P(Collectives, reductions_of_i32) {
  try_reductions<std::int32_t>(self(), size(), [&](const auto& call, const auto& what) { carry_out(call, what); });
}
TEST_P(Collectives, reductions_of_u8) {
  try_reductions<std::uint8_t>(self(), size(), [&](const auto& call, const auto& what) { carry_out(call, what); });
}
TEST_P(Collectives, reductions_of_f32) {
  try_reductions<float>(self(), size(), [&](const auto& call, const auto& what) { carry_out(call, what); });
}
TEST_P(Collectives, reductions_of_f64) {
  try_reductions<double>(self(), size(), [&](const auto& call, const auto& what) { carry_out(call, what); });
}

TEST_P(Collectives, reduce_scatter_gives_each_its_block) {
  for (const std::size_t bytes : kSizes) {
    const std::size_t block = bytes / 4;
    const auto n = static_cast<std::size_t>(size());
    const std::vector<float> own = gift<float>(self(), block * n, 1),
                             all = combined<float>(ReduceOp::sum, size(), block * n, 1);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(block) * self();
    const std::vector<float> expected(begin, begin + static_cast<std::ptrdiff_t>(block));
    std::vector<float> out(block);
    carry_out(reduce_scatter(buffer_of(own), buffer_of(out), DataType::f32, ReduceOp::sum), "reduce_scatter");
    ASSERT_EQ(out, expected) << block;
    std::vector<float> in_place = own;
    carry_out(reduce_scatter({}, buffer_of(in_place), DataType::f32, ReduceOp::sum), "reduce_scatter in place");
    in_place.resize(block);
    ASSERT_EQ(in_place, expected) << block;
  }
}

TEST_P(Collectives, blocks_go_where_they_belong) {
  const auto n = static_cast<std::size_t>(size());
  const auto place = static_cast<std::size_t>(self());
  for (const std::size_t bytes : kSizes) {
    std::vector<std::uint8_t> all;
    for (int m = 0; m < size(); ++m) {
      const auto block = gift<std::uint8_t>(m, bytes, 4);
      all.insert(all.end(), block.begin(), block.end());
    }
    const std::vector<std::uint8_t> own = gift<std::uint8_t>(self(), bytes, 4);
    for (const bool in_place : {false, true}) {
      std::vector<std::uint8_t> out(bytes * n);
      if (in_place) std::copy(own.begin(), own.end(), out.begin() + static_cast<std::ptrdiff_t>(bytes * place));
      carry_out(allgather(in_place ? ConstBuffer() : buffer_of(own), buffer_of(out)), "allgather");
      ASSERT_EQ(out, all) << bytes << in_place;
      for (int root = 0; root < size(); ++root) {
        std::vector<std::uint8_t> at_root(root == self() ? bytes * n : 0);
        carry_out(gather(buffer_of(own), buffer_of(at_root), root), "gather");
        if (root == self()) {
          ASSERT_EQ(at_root, all) << bytes;
        }
        std::vector<std::uint8_t> back(bytes);
        const auto from = root == self() ? ConstBuffer(buffer_of(all)) : ConstBuffer();
        carry_out(scatter(from, buffer_of(back), root), "scatter");
        ASSERT_EQ(back, own) << bytes;
      }
    }
    // Block j of member m is what m gives with salt j.
    std::vector<std::uint8_t> gives, expected, got(bytes * n);
    for (int m = 0; m < size(); ++m) {
      const auto to_m = gift<std::uint8_t>(self(), bytes, m), from_m = gift<std::uint8_t>(m, bytes, self());
      gives.insert(gives.end(), to_m.begin(), to_m.end());
      expected.insert(expected.end(), from_m.begin(), from_m.end());
    }
    carry_out(alltoall(buffer_of(gives), buffer_of(got)), "alltoall");
    ASSERT_EQ(got, expected) << bytes;
  }
}

TEST_P(Collectives, blocks_of_different_sizes) {
  for (const std::size_t unit : {std::size_t{1}, std::size_t{40}, std::size_t{100'000}}) {
    std::vector<std::uint64_t> sizes;
    std::vector<std::uint8_t> all;
    for (int m = 0; m < size(); ++m) {
      sizes.push_back(unit * static_cast<std::size_t>(m));  // the first has none
      const auto block = gift<std::uint8_t>(m, sizes.back(), 5);
      all.insert(all.end(), block.begin(), block.end());
    }
    const auto own = gift<std::uint8_t>(self(), sizes[static_cast<std::size_t>(self())], 5);
    std::vector<std::uint8_t> out(all.size());
    carry_out(allgather(buffer_of(own), buffer_of(out), sizes), "allgather of different blocks");
    ASSERT_EQ(out, all);
  }
}

/// Memory at odd addresses.
TEST_P(Collectives, nothing_need_be_aligned) {
  for (const std::size_t count : {std::size_t{3}, std::size_t{1000}, std::size_t{100'000}}) {
    std::vector<std::byte> in(count * 8 + 1), out(count * 8 + 3);
    const auto own = gift<double>(self(), count, 0), all = combined<double>(ReduceOp::sum, size(), count, 0);
    std::memcpy(in.data() + 1, own.data(), count * 8);
    carry_out(allreduce(ConstBuffer(in.data() + 1, count * 8), Buffer(out.data() + 3, count * 8), DataType::f64,
                        ReduceOp::sum),
              "allreduce of unaligned memory");
    ASSERT_EQ(std::memcmp(out.data() + 3, all.data(), count * 8), 0) << count;
  }
}

/// Of values whose sum depends on the order: all members have the same bits, which are those of the order of ranks, by
/// every algorithm.
TEST_P(Collectives, sums_have_the_same_bits_everywhere) {
  std::mt19937 random(7);
  for (const std::size_t count : {std::size_t{4}, std::size_t{1000}, std::size_t{300'000}}) {
    std::vector<std::vector<float>> gifts;
    for (int m = 0; m < size(); ++m) {
      std::uniform_real_distribution<float> values(-1e8f, 1e8f);
      gifts.emplace_back(count);
      for (float& value : gifts.back()) value = (random() % 3 == 0 ? 1e-8f : 1.0f) * values(random);
    }
    std::vector<float> expected = gifts[0];
    for (std::size_t m = 1; m < gifts.size(); ++m) {
      for (std::size_t i = 0; i < count; ++i) expected[i] += gifts[m][i];
    }
    std::vector<float> out(count);
    for (int round = 0; round < 3; ++round) {
      carry_out(
          allreduce(buffer_of(gifts[static_cast<std::size_t>(self())]), buffer_of(out), DataType::f32, ReduceOp::sum),
          "allreduce");
      ASSERT_EQ(std::memcmp(out.data(), expected.data(), count * sizeof(float)), 0) << count;
    }
  }
}

/// 2 x 2 matrices: associative and not commutative.
TEST_P(Collectives, a_function_of_the_program_combines_in_the_order_of_ranks) {
  struct Matrix {
    std::int64_t a[4];
    bool operator==(const Matrix&) const = default;
    Matrix operator*(const Matrix& b) const {
      return {{a[0] * b.a[0] + a[1] * b.a[2], a[0] * b.a[1] + a[1] * b.a[3], a[2] * b.a[0] + a[3] * b.a[2],
               a[2] * b.a[1] + a[3] * b.a[3]}};
    }
  };
  int calls = 0;
  const UserReduce product{[](void* context, void* total, const void* next, std::uint64_t count) noexcept {
                             ++*static_cast<int*>(context);
                             auto* left = static_cast<std::byte*>(total);
                             const auto* right = static_cast<const std::byte*>(next);
                             for (std::uint64_t i = 0; i < count; ++i) {
                               Matrix x, y;
                               std::memcpy(&x, left + i * sizeof(x), sizeof(x));
                               std::memcpy(&y, right + i * sizeof(y), sizeof(y));
                               x = x * y;
                               std::memcpy(left + i * sizeof(x), &x, sizeof(x));
                             }
                           },
                           &calls, sizeof(Matrix)};
  for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{20'000}}) {
    const auto matrix = [](int m, std::size_t i) {
      return Matrix{{1, static_cast<std::int64_t>(i % 3) + m, static_cast<std::int64_t>(i % 2) + 1, m + 1}};
    };
    std::vector<Matrix> own(count), out(count), expected(count);
    for (std::size_t i = 0; i < count; ++i) {
      own[i] = matrix(self(), i);
      expected[i] = matrix(0, i);
      for (int m = 1; m < size(); ++m) expected[i] = expected[i] * matrix(m, i);
    }
    carry_out(allreduce(buffer_of(own), buffer_of(out), product), "allreduce by a function");
    ASSERT_EQ(out, expected) << count;
  }
  EXPECT_TRUE(calls > 0 || size() == 1);
}

/// Members that are ahead by random times, and collectives in random order.
TEST_P(Collectives, ten_thousand_small_calls_with_skew) {
  std::mt19937 common(11), own(static_cast<unsigned>(self()) + 100);
  const int calls = test::effort(10'000, 500);
  for (int i = 0; i < calls; ++i) {
    const auto value = static_cast<std::uint64_t>(i) * 8 + static_cast<std::uint64_t>(self());
    std::uint64_t sum = 0;
    for (int m = 0; m < size(); ++m) sum += static_cast<std::uint64_t>(i) * 8 + static_cast<std::uint64_t>(m);
    if (own() % 500 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 300));
    const unsigned which = common() % 4;
    const int root = static_cast<int>(common() % static_cast<unsigned>(size()));
    std::uint64_t got = which == 1 && root == self() ? value : 0;
    Collective call = barrier();
    if (which == 1) call = broadcast(Buffer(&got, 8, MemoryKind::host), root);
    if (which >= 2) {
      call = allreduce(ConstBuffer(&value, 8, MemoryKind::host), Buffer(&got, 8, MemoryKind::host), DataType::u64,
                       ReduceOp::sum);
    }
    ASSERT_TRUE(team_.run(call).ok()) << i << " " << team_.fault();
    if (which == 1) {
      ASSERT_EQ(got, static_cast<std::uint64_t>(i) * 8 + static_cast<std::uint64_t>(root)) << i;
    }
    if (which >= 2) {
      ASSERT_EQ(got, sum) << i;
    }
  }
}

TEST_P(Collectives, calls_that_are_under_way_together_keep_their_order) {
  constexpr int kCalls = 100;
  std::vector<std::int64_t> values(kCalls), sums(kCalls);
  std::vector<std::unique_ptr<Operation>> operations;
  for (int i = 0; i < kCalls; ++i) {
    const auto place = static_cast<std::size_t>(i);
    values[place] = i + self();
    operations.emplace_back(new Operation(team_.start(
        allreduce(std::span<const std::int64_t>(&values[place], 1), std::span(&sums[place], 1), ReduceOp::sum))));
  }
  for (const auto& operation : operations) {
    ASSERT_TRUE(job().wait_for(std::chrono::seconds(60), *operation).ok()) << team_.fault();
  }
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_EQ(sums[static_cast<std::size_t>(i)], i * size() + size() * (size() - 1) / 2);
  }
}

TEST_P(Collectives, a_coroutine_awaits_them) {
  job().run([](Team& team) -> Task<void> {
    for (int i = 0; i < 20; ++i) {
      double value = team.rank() + i, sum = 0;
      const OpResult result =
          co_await team.start(allreduce(std::span<const double>(&value, 1), std::span(&sum, 1), ReduceOp::sum));
      result.or_throw("no sum");
      EXPECT_EQ(result.bytes, sizeof(sum));
      EXPECT_EQ(sum, i * team.size() + team.size() * (team.size() - 1) / 2.0);
    }
  }(team_));
}

TEST_P(Collectives, a_wrong_call_is_refused_here_and_a_right_one_may_follow) {
  std::vector<float> in(3), out(4);
  EXPECT_EQ(team_.run(allreduce(buffer_of(in), buffer_of(out), DataType::f32, ReduceOp::sum)).status,
            Status::invalid_argument);
  EXPECT_EQ(team_.run(allreduce(buffer_of(out), DataType::f32, ReduceOp::bit_and)).status, Status::invalid_argument);
  EXPECT_EQ(team_.run(broadcast(buffer_of(out), size())).status, Status::invalid_argument);
  EXPECT_EQ(team_.run(Collective{}).status, Status::invalid_argument);
  EXPECT_EQ(team_.run(broadcast(Buffer(nullptr, 8), 0)).status, Status::invalid_argument);
  EXPECT_EQ(team_.explain(broadcast(buffer_of(out), -1)), "");
  EXPECT_TRUE(team_.fault().empty());
  EXPECT_TRUE(team_.run(barrier()).ok());
}

TEST_P(Collectives, the_journal_has_the_last_64_calls) {
  if (GetParam().placing == Placing::stream) GTEST_SKIP() << "calls of streams are not in it";
  for (int i = 0; i < 100; ++i) carry_out(barrier(), "barrier");
  std::uint32_t value = 1;
  carry_out(allreduce(Buffer(&value, 4), DataType::u32, ReduceOp::sum), "allreduce");
  const std::vector<TeamCall> calls = team_.journal();
  ASSERT_EQ(calls.size(), 64u);
  EXPECT_EQ(calls.back().number, 101u);
  EXPECT_EQ(calls.front().number, 38u);
  EXPECT_EQ(calls.back().kind, CollectiveKind::allreduce);
  EXPECT_EQ(calls.back().bytes, 4u);
  EXPECT_EQ(calls.back().status, Status::ok);
  EXPECT_EQ(calls.back().algorithm, team_.explain(allreduce(Buffer(&value, 4), DataType::u32, ReduceOp::sum)));
}

TEST_P(Collectives, teams_are_split_and_named) {
  EXPECT_EQ(team_.name().substr(0, 2), "0.");
  // Even and odd ranks, the highest first.
  Team half = team_.split(self() % 2, -self());
  ASSERT_TRUE(half.is_open());
  std::vector<int> members;
  for (int m = size() - 1; m >= 0; --m) {
    if (m % 2 == self() % 2) members.push_back(m);
  }
  ASSERT_EQ(half.size(), static_cast<int>(members.size()));
  for (int m = 0; m < half.size(); ++m) EXPECT_EQ(half.member(m).value, members[static_cast<std::size_t>(m)]);
  EXPECT_EQ(half.member(half.rank()), job().rank());
  std::int32_t own = self(), sum = 0;
  ASSERT_TRUE(half.run(allreduce(std::span<const std::int32_t>(&own, 1), std::span(&sum, 1), ReduceOp::sum)).ok());
  int expected = 0;
  for (const int m : members) expected += m;
  EXPECT_EQ(sum, expected);
  // One of them in none.
  Team others = team_.split(self() == 0 ? -1 : 5, 0);
  EXPECT_EQ(others.is_open(), self() != 0);
  if (others.is_open()) {
    EXPECT_TRUE(others.run(barrier()).ok());
  }
  EXPECT_TRUE(team_.run(barrier()).ok());
}

/// Which host a process is of, by what the kernel says.
std::uint64_t shared_memory_of_this_process() {
  struct stat about{};
  EXPECT_EQ(::stat("/proc/self/ns/ipc", &about), 0);
  return about.st_ino;
}

TEST_P(Collectives, the_local_team_is_those_on_the_same_host) {
  const std::uint64_t own = shared_memory_of_this_process();
  Team backwards = team_.split(0, -self());
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size()));
  ASSERT_TRUE(backwards.run(allgather(ConstBuffer(&own, sizeof(own), MemoryKind::host), Buffer(std::span(all)))).ok());
  std::vector<Rank> expected;
  for (int m = 0; m < size(); ++m) {
    if (all[static_cast<std::size_t>(m)] == own) expected.push_back(backwards.member(m));
  }
  Team local = backwards.local();
  std::vector<Rank> members;
  members.reserve(static_cast<std::size_t>(local.size()));
  for (int m = 0; m < local.size(); ++m) members.push_back(local.member(m));
  EXPECT_EQ(members, expected) << "in the order of the team that it was made of";
  EXPECT_EQ(local.member(local.rank()), job().rank());
  std::int32_t one = 1, sum = 0;
  ASSERT_TRUE(local.run(allreduce(std::span<const std::int32_t>(&one, 1), std::span(&sum, 1), ReduceOp::sum)).ok());
  EXPECT_EQ(sum, static_cast<std::int32_t>(expected.size()));
}

/// Of a team that is no more, and by those on one host alone.
TEST_P(Collectives, a_local_team_is_made_by_its_members_alone) {
  Team team = Team::world(job(), {.patience = std::chrono::seconds(60), .way = GetParam().way});
  if (self() == 0) team.abandon();
  ASSERT_EQ(job().worker().wait_until([&] { return self() == 0 || !team.fault().empty(); }, std::chrono::seconds(60)),
            Status::ok);
  if (team.local().member(0) != Rank{0}) {
    EXPECT_TRUE(team.local().run(barrier()).ok()) << "once more, without those on the host of rank 0";
  }
  EXPECT_TRUE(team_.run(barrier()).ok());
}

/// Whoever waits for one that closes hears of it.
TEST_P(Collectives, closing_ends_what_is_under_way_at_all) {
  if (size() == 1) GTEST_SKIP() << "nobody is awaited";
  Team team = Team::world(job(), {.patience = std::chrono::seconds(60), .way = GetParam().way});
  if (self() == size() - 1) {
    // The call stays under way since this one does not come.
    ASSERT_EQ(job().worker().wait_until([&] { return !team.fault().empty(); }, std::chrono::seconds(60)), Status::ok);
    ASSERT_EQ(team.run(barrier()).status, Status::canceled);
    return;
  }
  Operation waits = team.start(barrier());
  if (self() == 0) team.close();
  ASSERT_EQ(job().wait_for(std::chrono::seconds(60), waits).status, Status::canceled);
}

/// Although nothing is under way at it; what the others can end without it, they do.
TEST_P(Collectives, who_gives_a_team_up_ends_the_next_call_of_the_others) {
  if (size() == 1) GTEST_SKIP() << "nobody is awaited";
  Team team = Team::world(job(), {.patience = std::chrono::seconds(60), .way = GetParam().way});
  Operation first = team.start(barrier());
  ASSERT_TRUE(job().wait_for(std::chrono::seconds(60), first).ok()) << team.fault();
  if (self() == 0) team.abandon();
  Operation second = team.start(barrier());
  ASSERT_EQ(job().wait_for(std::chrono::seconds(60), second).status, Status::canceled);
  EXPECT_NE(team.fault().find("member 0"), std::string::npos) << team.fault();
}

/// Where some members share a host and not all do, small calls cost one message for each other host, from one member
/// of each.
TEST_P(Collectives, members_of_one_host_exchange_no_messages_for_small_calls) {
  if (!g_pairs || GetParam().way != TeamWay::automatic || GetParam().placing != Placing::host)
    GTEST_SKIP() << "no two processes share a host that others do not";
  std::int64_t own = self(), sum = 0;
  const Collective call = allreduce(std::span<const std::int64_t>(&own, 1), std::span(&sum, 1), ReduceOp::sum);
  EXPECT_EQ(team_.explain(call), "partials");
  const std::uint64_t before = job().worker().engine().service<am::Messenger>().counts().sent;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(team_.run(call).ok()) << team_.fault();
  EXPECT_EQ(sum, size() * (size() - 1) / 2);
  const std::uint64_t sent = job().worker().engine().service<am::Messenger>().counts().sent - before;
  EXPECT_EQ(sent, self() % 2 == 0 ? 10u * static_cast<unsigned>(size() / 2 - 1) : 0u);
}

std::string name_of(const Form& form) {
  constexpr const char* kPlacings[] = {"automatic", "pinned", "device", "mixed", "stream"};
  const std::string placing = kPlacings[static_cast<std::size_t>(form.placing)];
  if (form.way == TeamWay::automatic) return placing;
  return form.placing == Placing::host ? "messages" : "messages_" + placing;
}

constexpr Form kForms[] = {
    {TeamWay::automatic, Placing::host},  {TeamWay::automatic, Placing::pinned}, {TeamWay::automatic, Placing::device},
    {TeamWay::automatic, Placing::mixed}, {TeamWay::automatic, Placing::stream}, {TeamWay::messages, Placing::host},
    {TeamWay::messages, Placing::mixed},
};
INSTANTIATE_TEST_SUITE_P(Ways, Collectives, testing::ValuesIn(kForms),
                         [](const auto& form) { return name_of(form.param); });

TEST(Team, a_list_that_makes_no_team_is_refused) {
  const auto make = [](std::vector<Rank> ranks) { Team(job(), ranks); };
  const Rank self = job().rank();
  EXPECT_THROW(make({}), Error);
  EXPECT_THROW(make({self, self}), Error);
  EXPECT_THROW(make({self, Rank{job().size()}}), Error);
  EXPECT_THROW(make({self, Rank{-1}}), Error);
  if (job().size() > 1) {
    EXPECT_THROW(make({Rank{self.value == 0 ? 1 : 0}}), Error);
  }
}

TEST(Team, one_member_needs_nobody) {
  Team alone(job(), std::vector<Rank>{job().rank()});
  EXPECT_EQ(alone.size(), 1);
  std::vector<float> in = {1, 2, 3}, out(3);
  EXPECT_TRUE(alone.run(barrier()).ok());
  EXPECT_TRUE(alone.run(allreduce(buffer_of(in), buffer_of(out), DataType::f32, ReduceOp::average)).ok());
  EXPECT_EQ(out, in);
  std::fill(out.begin(), out.end(), 0.0f);
  EXPECT_TRUE(alone.run(alltoall(buffer_of(in), buffer_of(out))).ok());
  EXPECT_EQ(out, in);
  EXPECT_EQ(alone.explain(barrier()), "alone");
}

/// Two teams of the same members are apart from each other, also when their calls interleave.
TEST(Team, several_of_the_same_members) {
  Team a = Team::world(job()), b = Team::world(job());
  EXPECT_NE(a.name(), b.name());
  std::int64_t own = job().rank().value, of_a = 0, of_b = 0;
  Operation first = a.start(allreduce(std::span<const std::int64_t>(&own, 1), std::span(&of_a, 1), ReduceOp::sum));
  Operation second = b.start(allreduce(std::span<const std::int64_t>(&own, 1), std::span(&of_b, 1), ReduceOp::max));
  ASSERT_TRUE(job().wait_for(std::chrono::seconds(60), second, first).ok());
  const std::int64_t last = job().size() - 1;
  EXPECT_EQ(of_a, last * (last + 1) / 2);
  EXPECT_EQ(of_b, last);
}

}  // namespace
}  // namespace brant
