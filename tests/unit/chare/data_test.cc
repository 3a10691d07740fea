// Data arguments: GPU memory and large host buffers that travel apart from the message of a call.
#include <cstring>
#include <deque>
#include <map>
#include <numeric>

#include "core/engine.h"
#include "models/chare/core.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::JobOptions;
using test::Program;

std::vector<int> ramp(int count, int start) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), start);
  return values;
}

Memory filled(Runtime& runtime, MemoryKind kind, const std::vector<int>& values) {
  Memory memory = runtime.allocate(kind, values.size() * sizeof(int));
  runtime.copy(memory, std::span(values));
  return memory;
}

std::vector<int> contents(Runtime& runtime, ConstBuffer buffer) {
  std::vector<int> values(buffer.bytes / sizeof(int));
  runtime.copy(std::span(values), buffer);
  return values;
}

/// Sum of what landed, plus what was said with it.
class Receiver : public Chare<Receiver> {
 public:
  explicit Receiver(int landing_kind) : kind_(static_cast<MemoryKind>(landing_kind)) {}

  // With a post entry: into a ghost of its step, since the data of several may come at once.
  void halo(DeviceData face, int step) {
    EXPECT_FALSE(face.owned());
    EXPECT_EQ(face.data(), ghosts_[step].data());
    note(face, step);
  }
  Buffer post(Post<&Receiver::halo>, const DeviceMeta& face, int step) {
    EXPECT_EQ(face.argument, 0);
    Memory& ghost = ghosts_[step];
    if (ghost.bytes() < face.bytes) ghost = chares().runtime().allocate(kind_, std::max<std::size_t>(face.bytes, 4));
    ++posts_;
    return ghost;
  }

  // Without: the runtime's memory.
  void give(DeviceData data, int step) {
    EXPECT_TRUE(data.owned());
    note(data, step);
    if (step < 0) kept_.push_back(std::move(data));
  }
  void give_const(const DeviceData& data, int step) { note(data, step); }

  // Several at once, one of them left to the runtime, host data between, other arguments around.
  Task<int> mix(std::string_view name, DeviceData first, HostData<double> table, int scale, DeviceData second) {
    const std::vector<double> factors(table.items().begin(), table.items().end());
    EXPECT_EQ(name, "a name that does not fit into a small string");
    EXPECT_FALSE(first.owned());
    EXPECT_TRUE(table.owned());
    EXPECT_TRUE(second.owned());
    co_await sleep_for(chares().runtime().worker(), std::chrono::microseconds(50));
    int sum = 0;
    for (const int value : contents(chares().runtime(), first)) sum += value;
    for (const int value : contents(chares().runtime(), second)) sum += value;
    for (const double factor : factors) sum += static_cast<int>(factor);
    co_return sum* scale;
  }
  std::array<Buffer, 3> post(Post<&Receiver::mix>, std::string_view name, const DeviceMeta& first,
                             const DeviceMeta& table, int scale, const DeviceMeta& second) {
    EXPECT_EQ(name.size(), 44u);
    EXPECT_EQ(first.argument + 10 * table.argument + 100 * second.argument, 210);
    EXPECT_EQ(table.kind, MemoryKind::host);
    EXPECT_EQ(scale, 3);
    ghosts_[0] = chares().runtime().allocate(kind_, first.bytes + 64);  // larger is fine
    std::array<Buffer, 3> landings;
    landings[0] = ghosts_[0];
    return landings;
  }

  void host(HostData<int> data) {
    for (const int value : data.items()) sum_ += value;
    ++runs_;
  }

  std::int64_t sum() { return sum_; }
  int runs() { return runs_; }
  int posts() { return posts_; }

 private:
  void note(const DeviceData& data, int step) {
    for (const int value : contents(chares().runtime(), data)) sum_ += value;
    sum_ += step;
    ++runs_;
  }

  MemoryKind kind_;
  std::map<int, Memory> ghosts_;
  std::vector<DeviceData> kept_;
  std::int64_t sum_ = 0;
  int runs_ = 0;
  int posts_ = 0;
};

Task<int> runs_of(Element<Receiver> block, int wanted) {
  int runs = 0;
  while (runs < wanted) runs = co_await block.ask<&Receiver::runs>();
  co_return runs;
}

/// To every element, of every size, with and without post entry; the sources are overwritten when they are free.
Task<void> everything(Chares& chares) {
  Runtime& runtime = chares.runtime();
  const MemoryKind kind = runtime.device_kind();
  const auto blocks =
      create_array<Receiver>(chares, 2 * chares.size(), Placement::round_robin(), static_cast<int>(kind));
  std::vector<std::int64_t> expected(static_cast<std::size_t>(2 * chares.size()));
  std::vector<int> rounds(expected.size());
  int step = 0;
  for (const int count : std::array{1, 2, 1000, 40'000}) {
    for (int i = 0; i < 2 * chares.size(); ++i) {
      const std::vector<int> values = ramp(count, i);
      Memory source = filled(runtime, kind, values);
      Memory other = filled(runtime, MemoryKind::host, values);
      Promise<ConstBuffer> first, second;
      Future<ConstBuffer> first_free = first.future(), second_free = second.future();
      blocks[i].call<&Receiver::halo>(device(source, std::move(first)), step);
      blocks[i].call<&Receiver::give>(device(other, std::move(second)), step);
      const ConstBuffer free = co_await first_free;
      EXPECT_EQ(free.data, source.data());
      EXPECT_EQ(free.bytes, source.bytes());
      const std::vector<int> other_values(values.size(), -1);
      runtime.copy(source, std::span(other_values));
      static_cast<void>(co_await second_free);
      std::memset(other.data(), 0xff, other.bytes());
      static_cast<void>(co_await runs_of(blocks[i], 2 * ++rounds[static_cast<std::size_t>(i)]));  // the ghost is free
      expected[static_cast<std::size_t>(i)] += 2 * (std::accumulate(values.begin(), values.end(), 0LL) + step);
      ++step;
    }
  }
  for (int i = 0; i < 2 * chares.size(); ++i) {
    const int runs = co_await runs_of(blocks[i], 8);
    EXPECT_EQ(runs, 8);
    const std::int64_t sum = co_await blocks[i].ask<&Receiver::sum>();
    EXPECT_EQ(sum, expected[static_cast<std::size_t>(i)]) << i;
  }
  const std::vector<double> table(10'000, 1.0);
  const std::span<const double> view(table);
  Memory left = filled(runtime, kind, ramp(5, 1)), right = filled(runtime, kind, ramp(7, 1));
  for (int i = 0; i < 2 * chares.size(); ++i) {
    const int mixed = co_await blocks[i].ask<&Receiver::mix>("a name that does not fit into a small string",
                                                             device(left), no_copy(view), 3, device(right));
    EXPECT_EQ(mixed, 3 * (15 + 28 + 10'000));
  }
  EXPECT_EQ(chares.counts().data_coming, 0u);
}

TEST(Data, reaches_every_chare_of_one_process) {
  for (const GpuChoice gpu : {GpuChoice::none, GpuChoice::emulated}) {
    Program program(test::with(test::ranks(1), false, gpu, false));
    EXPECT_EQ(program.run(everything), 0) << program.failure();
  }
}
TEST(Data, reaches_every_chare_over_every_path_while_messages_overtake_each_other) {
  for (std::uint64_t seed = 1; seed <= test::effort(3u, 1u); ++seed) {
    for (const JobOptions& options : test::variants(test::reordering(seed, 3))) {
      Program program(options);
      EXPECT_EQ(program.run(everything), 0) << "seed " << seed << ": " << program.failure();
    }
  }
}
TEST(Data, reaches_every_chare_over_a_wire_that_repeats_refuses_and_delays) {
  for (std::uint64_t seed = 1; seed <= test::effort(3u, 1u); ++seed) {
    for (const JobOptions& options : test::variants(test::faulty(seed, 2))) {
      Program program(options);
      EXPECT_EQ(program.run(everything), 0) << "seed " << seed << ": " << program.failure();
    }
  }
}

/// More than the channel's window holds, for an element that does not exist; behind it comes what others wait for, and
/// only then is it inserted.
Task<void> late(Chares& chares, int rank) {
  constexpr int kCalls = test::effort(600, 300);
  Runtime& runtime = chares.runtime();
  const auto sparse = create_sparse<Receiver>(chares, Placement::round_robin());
  Memory source = filled(runtime, runtime.device_kind(), ramp(100, 0));
  for (int i = 0; i < kCalls / 2; ++i) {
    sparse[rank].call<&Receiver::halo>(device(source), i);
    sparse[rank].call<&Receiver::give>(device(source), 0);
  }
  sparse.insert(rank + chares.size(), static_cast<int>(runtime.device_kind()));
  Promise<ConstBuffer> sent;
  Future<ConstBuffer> free = sent.future();
  sparse[rank + chares.size()].call<&Receiver::give>(device(source, std::move(sent)), 7);
  const int here = co_await runs_of(sparse[rank + chares.size()], 1);
  EXPECT_EQ(here, 1);
  static_cast<void>(co_await free);
  sparse.insert(rank, static_cast<int>(runtime.device_kind()));
  const int runs = co_await runs_of(sparse[rank], kCalls);
  EXPECT_EQ(runs, kCalls);
  const std::int64_t sum = co_await sparse[rank].ask<&Receiver::sum>();
  constexpr std::int64_t kSteps = kCalls / 2 * (kCalls / 2 - 1) / 2;
  EXPECT_EQ(sum, kCalls * 4950LL + kSteps);
}
TEST(Data, for_an_element_that_comes_late_does_not_fill_the_window) {
  for (const JobOptions& options : test::variants(test::reordering(2, 2))) {
    for (const int rank : {0, 1}) {
      Program program(options);
      EXPECT_EQ(program.run(late, rank), 0) << program.failure();
    }
  }
}

Task<void> broadcast(Chares& chares) {
  Runtime& runtime = chares.runtime();
  const MemoryKind kind = runtime.device_kind();
  const int elements = 3 * chares.size() + 1;
  const auto blocks = create_array<Receiver>(chares, elements, Placement::block(), static_cast<int>(kind));
  Memory source = filled(runtime, kind, ramp(3000, 0));
  constexpr std::int64_t kSum = 2999LL * 3000 / 2;
  for (int step = 0; step < 4; ++step) {
    Promise<ConstBuffer> first, second;
    Future<ConstBuffer> first_free = first.future(), second_free = second.future();
    blocks.call<&Receiver::halo>(device(source, std::move(first)), step);
    blocks.call<&Receiver::give_const>(device(source, std::move(second)), step);
    static_cast<void>(co_await first_free);
    static_cast<void>(co_await second_free);
  }
  const std::vector<int> other_values = ramp(3000, 9);
  runtime.copy(source, std::span(other_values));
  for (int i = 0; i < elements; ++i) {
    static_cast<void>(co_await runs_of(blocks[i], 8));
    const std::int64_t sum = co_await blocks[i].ask<&Receiver::sum>();
    EXPECT_EQ(sum, 8 * kSum + 12);
    const int posts = co_await blocks[i].ask<&Receiver::posts>();
    EXPECT_EQ(posts, 4);
  }
}
TEST(Data, of_a_broadcast_reaches_all_elements_through_the_tree) {
  for (const int ranks : {1, 2, 7}) {
    for (const JobOptions& options : test::variants(test::reordering(4, ranks))) {
      Program program(options);
      EXPECT_EQ(program.run(broadcast), 0) << program.failure();
    }
  }
}

/// The chare is destroyed by a message that comes while its data is under way.
Task<void> destroy_early(Chares& chares, int rank) {
  Runtime& runtime = chares.runtime();
  const auto sparse = create_sparse<Receiver>(chares, Placement::round_robin());
  sparse.insert(rank, static_cast<int>(runtime.device_kind()));
  Memory source = filled(runtime, runtime.device_kind(), ramp(50'000, 0));
  auto runs = sparse[rank].ask<&Receiver::runs>();
  static_cast<void>(co_await runs);
  for (int i = 0; i < 5; ++i) {
    Promise<ConstBuffer> sent;
    Future<ConstBuffer> free = sent.future();
    sparse[rank].call<&Receiver::halo>(device(source, std::move(sent)), i);
    sparse[rank].destroy();
    sparse.insert(rank, static_cast<int>(runtime.device_kind()));
    static_cast<void>(co_await free);
    static_cast<void>(co_await sparse[rank].ask<&Receiver::runs>());
  }
}
TEST(Data, a_destroy_waits_until_nothing_comes_into_the_chare_any_more) {
  for (const JobOptions& options : test::variants(test::ranks(2))) {
    for (const int rank : {0, 1}) {
      Program program(options);
      EXPECT_EQ(program.run(destroy_early, rank), 0) << program.failure();
    }
  }
}

/// What nobody wants any more is received all the same, since the channel goes on behind it.
Task<void> swallow_too_many(Chares& chares) {
  const std::vector<detail::DataMeta> metas(ChannelPools::kTransfersMax + 1);
  chares.core().context().lanes.swallow(1, 0, metas.data(), metas.size());
  co_await chares.until_exit();
}
TEST(Data, that_nobody_wants_and_cannot_be_received_ends_the_job) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(swallow_too_many), 1);
  for (const char* part : {"rank 0 could not receive a data argument", "from rank 1", "limit_reached"}) {
    EXPECT_NE(program.failure().find(part), std::string::npos) << program.failure();
  }
}

/// An array is destroyed while data of another rank is coming into memory of its elements.
Task<void> destroy_all_early(Chares& chares) {
  Runtime& runtime = chares.runtime();
  for (int i = 0; i < 5; ++i) {
    const auto blocks =
        create_array<Receiver>(chares, 4, Placement::round_robin(), static_cast<int>(runtime.device_kind()));
    for (int k = 0; k < 4; ++k) static_cast<void>(co_await blocks[k].ask<&Receiver::runs>());
    Memory source = filled(runtime, runtime.device_kind(), ramp(50'000, 0));
    std::vector<Future<void>> done;
    for (int k = 0; k < 4; ++k) done.push_back(blocks[k].ask<&Receiver::halo>(device(source), i));
    if (i % 2 != 0) co_await chares.quiescence();
    blocks.destroy();
    for (Future<void>& each : done) {
      try {
        co_await each;
      } catch (const Error& error) {
        EXPECT_EQ(error.status(), Status::not_found) << error.what();
      }
    }
    co_await chares.quiescence();
  }
}
TEST(Data, a_destroy_of_an_array_waits_until_nothing_comes_into_its_elements_any_more) {
  for (const JobOptions& options : test::variants(test::ranks(2))) {
    Program program(options);
    EXPECT_EQ(program.run(destroy_all_early), 0) << program.failure();
    EXPECT_EQ(program.rank(0).counts().elements + program.rank(1).counts().elements, 0u);
  }
}

/// Programs that end with data under way leave the channel in order for the next one.
Task<int> leave_early(Chares& chares, const Memory& source, int rank) {
  const auto sparse = create_sparse<Receiver>(chares, Placement::round_robin());
  sparse.insert(rank + chares.size(), static_cast<int>(chares.runtime().device_kind()));
  for (int i = 0; i < 300; ++i) sparse[rank].call<&Receiver::halo>(device(source), 0);
  for (int i = 0; i < 30; ++i) sparse[rank + chares.size()].call<&Receiver::halo>(device(source), 0);
  co_return 5;
}
TEST(Data, under_way_at_the_end_of_a_program_does_not_disturb_the_next) {
  for (const bool links : {false, true}) {
    test::InProcessJob job(test::with(test::reordering(3, 2), links, GpuChoice::none, false));
    Memory source = filled(job.rank(0), MemoryKind::host, ramp(50'000, 0));
    for (int round = 0; round < 8; ++round) {
      const ChareOptions options{.connect = false};
      std::vector<std::unique_ptr<Chares>> ranks;
      for (int rank = 0; rank < 2; ++rank) ranks.push_back(std::make_unique<Chares>(job.rank(rank), options));
      for (auto& rank : ranks) rank->connect();
      if (round % 4 == 3) {
        ranks[0]->start(everything(*ranks[0]));
      } else {
        ranks[0]->start(leave_early(*ranks[0], source, 1));
      }
      int rounds = 0;
      while (!(ranks[0]->ended() && ranks[1]->ended()) && ++rounds < 100'000) {
        for (auto& rank : ranks) rank->progress();
      }
      ASSERT_LT(rounds, 100'000) << round;
      EXPECT_EQ(ranks[0]->exit_code(), round % 4 == 3 ? 0 : 5) << ranks[0]->failure() << ranks[1]->failure();
    }
  }
}

Task<void> leave_with_data(Chares& chares) {
  const auto sparse = create_sparse<Receiver>(chares, Placement::round_robin());
  Memory source = filled(chares.runtime(), MemoryKind::host, ramp(10, 0));
  Promise<ConstBuffer> sent;
  Future<ConstBuffer> free = sent.future();
  sparse[1].call<&Receiver::halo>(device(source, std::move(sent)), 0);
  static_cast<void>(co_await free);
}
TEST(Data, exit_with_a_call_that_has_its_data_but_no_chare_is_an_error) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(leave_with_data), 1);
  EXPECT_NE(program.failure().find("Receiver[1]::halo on rank 1, which was never inserted"), std::string::npos)
      << program.failure();
}

/// Refuses in all ways.
class Wrong : public Chare<Wrong> {
 public:
  void small(DeviceData) { ADD_FAILURE() << "must not run"; }
  Buffer post(Post<&Wrong::small>, const DeviceMeta& meta) { return {room_.data(), meta.bytes - 1, MemoryKind::host}; }
  void unknown(DeviceData) { ADD_FAILURE() << "must not run"; }
  Buffer post(Post<&Wrong::unknown>, const DeviceMeta& meta) {
    return {room_.data(), meta.bytes, MemoryKind::emulated};
  }
  void on_device(HostData<int>) { ADD_FAILURE() << "must not run"; }
  Buffer post(Post<&Wrong::on_device>, const DeviceMeta& meta) {
    memory_ = chares().runtime().allocate(MemoryKind::emulated, meta.bytes);
    return memory_;
  }
  void throws(DeviceData) { ADD_FAILURE() << "must not run"; }
  static Buffer post(Post<&Wrong::throws>, const DeviceMeta&) { throw Error(Status::device_failed, "no room today"); }
  int fine(DeviceData data) { return static_cast<int>(data.bytes()); }

 private:
  std::array<std::byte, 4096> room_{};
  Memory memory_;
};

template <auto Method, typename Argument>
Task<void> refused(Element<Wrong> wrong, Argument argument, Status status, std::string text) {
  try {
    co_await wrong.ask<Method>(std::move(argument));
    ADD_FAILURE() << "no exception for " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}
Task<void> refusals(Chares& chares) {
  Runtime& runtime = chares.runtime();
  const auto wrongs = create_array<Wrong>(chares, 2, Placement::round_robin());
  Memory source = filled(runtime, MemoryKind::emulated, ramp(500, 0));
  const std::vector<int> host = ramp(500, 0);
  for (int i = 0; i < 2; ++i) {
    const std::string rank = std::to_string(i);
    const std::string where = "[" + rank + "]::";
    co_await refused<&Wrong::small>(wrongs[i], device(source), Status::truncated,
                                    where + "small on rank " + rank +
                                        " threw: data argument 0 (2000 bytes of emulated memory from rank 0): its post "
                                        "entry named a landing of 1999 bytes of host memory: too small");
    co_await refused<&Wrong::unknown>(wrongs[i], device(source), Status::wrong_kind, where + "unknown on rank " + rank);
    co_await refused<&Wrong::on_device>(wrongs[i], no_copy(std::span<const int>(host)), Status::wrong_kind,
                                        "HostData lands in host memory");
    co_await refused<&Wrong::throws>(wrongs[i], device(source), Status::device_failed, "no room today");
    const int fine = co_await wrongs[i].ask<&Wrong::fine>(device(source));
    EXPECT_EQ(fine, 2000);
  }
  // The sender's own faults are thrown by the call.
  try {
    wrongs[1].call<&Wrong::fine>(device(ConstBuffer(host.data(), 2000, MemoryKind::emulated)));
    ADD_FAILURE() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::wrong_kind);
    EXPECT_NE(std::string(error.what()).find("Wrong::fine (2000 bytes of emulated memory) cannot be sent"),
              std::string::npos)
        << error.what();
  }
  try {
    wrongs[1].call<&Wrong::on_device>(no_copy(std::span<const int>(source.as<int>(), 500)));
    ADD_FAILURE() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::wrong_kind);
    EXPECT_NE(std::string(error.what()).find("no_copy takes host memory"), std::string::npos) << error.what();
  }
}
TEST(Data, wrong_landings_fail_the_call_with_one_clear_error) {
  for (const bool links : {false, true}) {
    Program program(test::with(test::ranks(2), links, GpuChoice::emulated, false));
    EXPECT_EQ(program.run(refusals), 0) << program.failure();
  }
}

struct Freed {
  int* order;
  int number;
  Status status = Status::internal;
  std::uint64_t bytes = 0;
  Completion sink() {
    return {[](void* self, const OpResult& result) noexcept {
              auto& freed = *static_cast<Freed*>(self);
              freed.status = result.status;
              freed.bytes = result.bytes;
              freed.number = ++*freed.order;
            },
            this};
  }
};
Task<void> sinks(Chares& chares) {
  Runtime& runtime = chares.runtime();
  const auto blocks =
      create_array<Receiver>(chares, chares.size(), Placement::round_robin(), static_cast<int>(MemoryKind::host));
  int order = 0;
  Memory source = filled(runtime, MemoryKind::host, ramp(10, 0));
  std::deque<Freed> freed;
  for (int i = 0; i < chares.size(); ++i) {
    freed.push_back({&order, 0});
    blocks[i].call<&Receiver::halo>(device(source, freed.back().sink()), i);
    EXPECT_EQ(freed.back().number, 0) << "never inside the call";
  }
  for (int i = 0; i < chares.size(); ++i) {
    static_cast<void>(co_await runs_of(blocks[i], 1));
    while (freed[static_cast<std::size_t>(i)].number == 0) {
      co_await sleep_for(runtime.worker(), std::chrono::microseconds(10));
    }
    EXPECT_EQ(freed[static_cast<std::size_t>(i)].status, Status::ok);
    EXPECT_EQ(freed[static_cast<std::size_t>(i)].bytes, 40u);
  }
}
TEST(Data, sinks_are_told_once_and_after_the_call) {
  Program program(test::ranks(3));
  EXPECT_EQ(program.run(sinks), 0) << program.failure();
}

/// Always the last that is polled in a round.
struct LastPoller final : Poller {
  unsigned poll() noexcept override {
    in_round = false;
    return 0;
  }
  bool in_round = false;
};
/// Always the first.
struct FirstPoller final : Poller {
  explicit FirstPoller(LastPoller& of) noexcept : last(of) {}
  unsigned poll() noexcept override {
    last.in_round = true;
    return 0;
  }
  LastPoller& last;
};
struct FreedBetweenRounds {
  const LastPoller& last;
  int told = 0, told_in_round = 0;
  Completion sink() {
    return {[](void* self, const OpResult&) noexcept {
              auto& freed = *static_cast<FreedBetweenRounds*>(self);
              ++freed.told;
              freed.told_in_round += freed.last.in_round ? 1 : 0;
            },
            this};
  }
};
Task<void> sinks_and_pollers(Chares& chares) {
  Runtime& runtime = chares.runtime();
  Engine& engine = runtime.worker().engine();
  const auto blocks = create_array<Receiver>(chares, 1, Placement::block(), static_cast<int>(MemoryKind::host));
  Memory source = filled(runtime, MemoryKind::host, ramp(10, 0));
  LastPoller last;
  FirstPoller first(last);
  FreedBetweenRounds freed{last};
  engine.pollers().attach(first);
  blocks[0].call<&Receiver::halo>(device(source, freed.sink()), 0);
  while (freed.told == 0) {
    engine.pollers().detach(last);  // behind those that were attached meanwhile
    engine.pollers().attach(last);
    co_await sleep_for(runtime.worker(), std::chrono::microseconds(10));
  }
  engine.pollers().detach(first);
  engine.pollers().detach(last);
  EXPECT_EQ(freed.told_in_round, 0) << "users are told when all pollers have run";
}
TEST(Data, sinks_are_told_outside_of_pollers) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(sinks_and_pollers), 0) << program.failure();
}

}  // namespace
}  // namespace brant
