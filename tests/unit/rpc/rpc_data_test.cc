// Arguments that travel as data beside the message.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/rpc.h"
#include "brant/ops/rpc/distributed.h"
#include "ops/rpc/service.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;

constexpr std::size_t kMany = 100'000;

struct DataCallers {
  explicit DataCallers(GpuChoice gpu = GpuChoice::emulated) : job(test::ranks(2, gpu)) {}

  template <typename T>
  T result(Future<T> future) {
    EXPECT_TRUE(job.run_until([&] { return future.ready(); }));
    return future.get();
  }
  Memory on_device(int rank, const std::vector<int>& values) {
    const std::size_t bytes = values.size() * sizeof(int);
    Memory memory = job.rank(rank).allocate(MemoryKind::emulated, bytes);
    job.rank(rank).copy(memory, ConstBuffer(values.data(), bytes));
    return memory;
  }
  void expect_idle() {
    job.run(100);
    for (int rank = 0; rank < 2; ++rank) {
      Engine& engine = job.rank(rank).worker().engine();
      EXPECT_EQ(engine.service<am::Messenger>().lent(), 0u);
      EXPECT_EQ(engine.service<lane::DataLanes>().landings().lent(), 0u);
      EXPECT_TRUE(engine.service<lane::DataLanes>().sources_idle());
    }
  }

  InProcessJob job;
  Rpc left{job.rank(0)}, right{job.rank(1)};
};

std::vector<int> ramp(std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

/// What was sent, read back on the host.
std::vector<int> read_back(Caller caller, std::string_view name, DeviceData data, int more) {
  EXPECT_EQ(name, "face");
  EXPECT_EQ(data.kind(), MemoryKind::emulated);
  EXPECT_TRUE(data.owned());
  std::vector<int> values(data.bytes() / sizeof(int));
  caller.runtime.copy(Buffer(values.data(), data.bytes()), data);
  for (int& value : values) value += more;
  return values;
}

TEST(RpcData, device_memory_lands_in_memory_of_the_runtime) {
  DataCallers ranks;
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, kMany}) {
    std::vector<int> values = ramp(count);
    const Memory face = ranks.on_device(0, values);
    for (int& value : values) value += 5;
    for (const int to : {1, 0}) {
      Promise<ConstBuffer> sent;
      Future<ConstBuffer> free = sent.future();
      EXPECT_EQ(ranks.result(ranks.left.call<&read_back>(Rank{to}, "face", device(face, std::move(sent)), 5)), values);
      EXPECT_EQ(ranks.result(std::move(free)).data, face.data());
    }
  }
  ranks.expect_idle();
}

long sum_of(HostData<int> first, const HostData<int>& second) {
  long sum = 0;
  for (const int item : first.items()) sum += item;
  for (const int item : second.items()) sum -= item;
  return sum;
}

TEST(RpcData, large_host_buffers_are_not_packed) {
  DataCallers ranks(GpuChoice::none);
  const std::vector<int> large = ramp(kMany), small = ramp(10);
  EXPECT_EQ(ranks.result(ranks.left.call<&sum_of>(Rank{1}, no_copy(std::span(large)), no_copy(std::span(small)))),
            4'999'950'000 - 45);
  EXPECT_EQ(ranks.result(ranks.left.call<&sum_of>(Rank{0}, no_copy(std::span(large)), no_copy(std::span(small)))),
            4'999'950'000 - 45);
  ranks.expect_idle();
}

std::vector<DeviceData> g_kept;
void keep(DeviceData data) { g_kept.push_back(std::move(data)); }
std::optional<Promise<void>> g_gate;
Task<std::size_t> size_later(DeviceData data) {
  co_await g_gate->future();
  co_return data.bytes();
}

TEST(RpcData, what_a_function_keeps_stays) {
  g_kept.clear();
  DataCallers ranks;
  const Memory face = ranks.on_device(0, ramp(1000));
  EXPECT_EQ(ranks.left.tell<&keep>(Rank{1}, device(face)), Status::ok);
  ASSERT_TRUE(ranks.job.run_until([] { return g_kept.size() == 1; }));
  std::vector<int> values(1000);
  ranks.job.rank(1).copy(Buffer(values.data(), 4000), g_kept[0]);
  EXPECT_EQ(values, ramp(1000));
  g_kept.clear();
  g_gate.emplace();
  Future<std::size_t> size = ranks.left.call<&size_later>(Rank{1}, device(face));
  ranks.job.run(100);
  EXPECT_FALSE(size.ready());
  g_gate->deliver();
  EXPECT_EQ(ranks.result(std::move(size)), 4000u);
  ranks.expect_idle();
}

TEST(RpcData, buffers_that_are_not_what_they_say) {
  DataCallers ranks;
  const Memory face = ranks.on_device(0, ramp(10));
  EXPECT_THROW(static_cast<void>(ranks.left.call<&sum_of>(Rank{1}, no_copy(std::span(face.as<const int>(), 10)),
                                                          no_copy(std::span<const int>()))),
               Error);
  ranks.expect_idle();
}

TEST(RpcData, what_is_not_sent_gives_its_source_back) {
  DataCallers ranks;
  const Memory face = ranks.on_device(0, ramp(10));
  for (const bool to_nobody : {false, true}) {
    Promise<ConstBuffer> sent;
    Future<ConstBuffer> free = sent.future();
    {
      PackedCall call = ranks.left.pack<&keep>(Rank{to_nobody ? 7 : 1}, device(face, std::move(sent)));
      if (to_nobody) {
        EXPECT_EQ(call.send(), Status::invalid_argument);
      }
    }
    EXPECT_THROW(static_cast<void>(ranks.result(std::move(free))), Error);
  }
  ranks.expect_idle();
}

/// Far more than fits into a window: the messages wait, and the data keeps its numbers.
TEST(RpcData, many_calls_with_data_among_others) {
  g_kept.clear();
  static std::vector<int> came;
  came.clear();
  DataCallers ranks(GpuChoice::none);
  const std::vector<int> values = ramp(300);
  constexpr int kCalls = 3000;
  constexpr auto kTake = [](HostData<int> data, int number) {
    EXPECT_EQ(data.items().size(), 300u);
    EXPECT_EQ(data.items().back(), 299);
    came.push_back(number);
  };
  for (int number = 0; number < kCalls; ++number) {
    ASSERT_EQ(ranks.left.tell<kTake>(Rank{1}, no_copy(std::span(values)), number), Status::ok);
    ASSERT_EQ(ranks.left.tell<[](int plain) { came.push_back(plain); }>(Rank{1}, kCalls + number), Status::ok);
  }
  ASSERT_TRUE(ranks.job.run_until([&] { return came.size() == std::size_t{2} * kCalls; }));
  std::ranges::sort(came);
  EXPECT_EQ(came, ramp(std::size_t{2} * kCalls));
  ranks.expect_idle();
}

std::vector<int> g_seen;
void look(const HostData<int>& data) {
  EXPECT_TRUE(data.owned());
  g_seen.assign(data.items().begin(), data.items().end());
}
void look_in_front(HostData<int> data, DistributedRef<int> part) {
  EXPECT_EQ(*part, 2);
  look(data);
}
void look_behind(DistributedRef<int> part, HostData<int> first, HostData<int> data) {
  EXPECT_EQ(*part, 2);
  EXPECT_EQ(first.items().size(), 1u);
  look(data);
}

/// Its data stays where it has landed, whatever lands meanwhile, and wherever the part stands among the parameters.
TEST(RpcData, a_call_that_waits_for_a_part_keeps_its_data) {
  for (const bool in_front : {true, false}) {
    DataCallers ranks(GpuChoice::none);
    const std::vector<int> values = ramp(kMany), others(kMany, -1), one{1};
    Distributed<int> mine(ranks.left, 1);
    const Status told =
        in_front ? ranks.left.tell<&look_in_front>(Rank{1}, no_copy(std::span(values)), mine)
                 : ranks.left.tell<&look_behind>(Rank{1}, mine, no_copy(std::span(one)), no_copy(std::span(values)));
    ASSERT_EQ(told, Status::ok);
    g_seen.clear();
    ranks.job.run(200);
    ASSERT_TRUE(g_seen.empty()) << "the part is yet to be made";
    ASSERT_EQ(ranks.left.tell<&look>(Rank{1}, no_copy(std::span(others))), Status::ok);
    ASSERT_TRUE(ranks.job.run_until([] { return !g_seen.empty(); }));
    g_seen.clear();
    Distributed<int> theirs(ranks.right, 2);
    ASSERT_TRUE(ranks.job.run_until([] { return !g_seen.empty(); }));
    EXPECT_EQ(g_seen, values);
    ranks.expect_idle();
  }
}

TEST(RpcData, the_runtime_ends_while_data_is_coming) {
  const std::vector<int> values = ramp(1'000'000);  // outlives who reads it
  const ConstBuffer source(values.data(), values.size() * sizeof(int), MemoryKind::host);
  for (const int rounds : {0, 1, 2, 3, 5, 8}) {
    std::optional<DataCallers> ranks(std::in_place, GpuChoice::none);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(ranks->left.tell<&keep>(Rank{i % 2}, device(source)), Status::ok);
    ranks->job.run(rounds);
    g_kept.clear();
    ranks.reset();
  }
}

/// As a peer may have written it.
TEST(RpcData, data_that_cannot_be_gives_the_peer_up) {
  using detail::DataHeader;
  using detail::DataState;
  struct Written {
    std::uint8_t announced;
    DataHeader header;
    std::size_t bytes;
    MemoryKind kind = MemoryKind::host;
  };
  for (const Written& written :
       {Written{9, {0, DataState::numbers, 9}, 500}, Written{1, {0, DataState::numbers, 2}, 500},
        Written{1, {64, DataState::origins, 1}, 500}, Written{1, {64, DataState::landed, 1}, 500},
        Written{2, {0, DataState::numbers, 2}, 40},
        Written{1, {0, DataState::numbers, 1}, 500, static_cast<MemoryKind>(77)}}) {
    DataCallers ranks(GpuChoice::none);
    auto& messenger = ranks.job.rank(0).worker().engine().service<am::Messenger>();
    am::Message* message = messenger.make(written.bytes);
    std::memset(message->data, 0, written.bytes);
    message->set_header(
        remote::CallHeader{remote::FunctionOf<&keep>::get().hash, 0, remote::CallKind::call, written.announced});
    std::memcpy(message->data, &written.header, sizeof(written.header));
    const lane::DataMeta meta{8, written.kind};
    std::memcpy(message->data + sizeof(DataHeader), &meta, sizeof(meta));
    ASSERT_EQ(messenger.send(Rank{1}, am::ServiceId::rpc, *message), Status::ok);
    ranks.job.run(50);
    EXPECT_TRUE(ranks.job.rank(1).worker().engine().peers()[0].lost) << int{written.announced};
  }
}

}  // namespace
}  // namespace brant
