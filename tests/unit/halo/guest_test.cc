// Kernels of the program that stay, and do the exchanges of modes stream and stacked by themselves, beside a CPU that
// moves their messages.
#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/halo.h"
#include "brant/notify/persistent_kernel.h"
#include "core/engine.h"
#include "support/in_process_job.h"
#include "support/refused.h"

namespace brant {
namespace {

using halo::MessagePlan;
using halo::Share;
using halo::Word;
using test::InProcessJob;
using test::refused;

constexpr unsigned kBlocks = 3;

struct Guest {
  MessagePlan plan;
  notify::DeviceBell together;
  notify::FanIn arrivals;
  notify::DeviceBell finished;
};

/// All blocks have come here. Places count from 1.
bool meet(simt::CpuThread& machine, const notify::KernelControl& control, const Guest& guest, Word place) {
  notify::arrive(machine, guest.together, guest.arrivals, place);
  return notify::wait(machine, control, guest.together, place) == notify::Waited::rung;
}

/// One exchange, behind which the messages have gone as well: the next one may begin at once.
bool exchange_once(simt::CpuThread& machine, const notify::KernelControl& control, const Guest& guest, Word epoch) {
  const auto copy = [&](const halo::CopyRange& range, Share share) {
    halo::copy_range(machine, guest.plan.packs.table, range, share);
  };
  halo::pack_messages(machine, guest.plan.packs, epoch, copy);
  if (!halo::unpack_messages(machine, control, guest.plan.unpacks, epoch, copy)) return false;
  if (!meet(machine, control, guest, 2 * epoch - 1)) return false;
  halo::tell_taken(machine, guest.plan, epoch);
  if (!halo::await_sent(machine, control, guest.plan, epoch)) return false;
  return meet(machine, control, guest, 2 * epoch);
}

/// Items are the first exchange, how many they are, and the number of the item.
void exchange_as_guest(const HostLaunch& launch) noexcept {
  simt::CpuThread machine(launch.engine_address, static_cast<unsigned>(launch.first_block), launch.shape.grid[0]);
  const auto control = launch.value<notify::KernelControl>(0);
  const auto guest = launch.value<Guest>(1);
  notify::KernelLife<simt::CpuThread> life(machine, control);
  notify::Item item;
  while (life.next(item)) {
    bool done = true;
    for (Word i = 0; done && i < item.words[1]; ++i) done = exchange_once(machine, control, guest, item.words[0] + i);
    if (done) life.done(guest.finished, item.words[2]);
  }
  life.leave();
}

/// One rank, its field, and its kernel.
class Side {
 public:
  Side(Runtime& runtime, const HaloOptions& options)
      : runtime_(runtime),
        exchange_(runtime, options),
        field_(runtime.allocate(MemoryKind::emulated, exchange_.field_bytes(0))),
        notifier_(runtime, {.bells = 16, .others = 16, .waits = 16}),
        together_(notifier_.make({.rung_by = RungBy::device, .seen_by = SeenBy::device})),
        finished_(notifier_.make({.rung_by = RungBy::device, .seen_by = SeenBy::host})) {}

  Task<void> bind() { return exchange_.bind(std::span(&(buffer_ = field_), 1)); }
  void launch(std::chrono::nanoseconds patience) {
    const Kernel<notify::KernelControl, Guest> kernel(runtime_.device(), {}, "guest", &exchange_as_guest);
    const Guest guest{exchange_.device_messages(kBlocks), together_.device(), notifier_.fan_in(kBlocks),
                      finished_.device()};
    LaunchShape shape;
    shape.grid[0] = kBlocks;
    kernel_ = PersistentKernel::launch(notifier_, kernel, shape, {.name = "guest", .patience = patience}, guest);
  }
  Task<void> by_guest(std::uint64_t times) { return exchange_.accompany(kernel_, times, work(times)); }
  Task<void> by_library() { return exchange_.run(std::span(&(buffer_ = field_), 1)); }
  HaloExchange& exchange() { return exchange_; }
  /// So many exchanges were done by others.
  void skip(std::uint64_t exchanges) { epoch_ += exchanges; }

  /// Numbers of this rank and cycle.
  void fill(int cycle) {
    std::vector<double> cells(field_.bytes() / sizeof(double));
    for (std::size_t i = 0; i < cells.size(); ++i)
      cells[i] = cycle * 1e6 + runtime_.rank().value * 1e5 + static_cast<double>(i);
    runtime_.copy(field_, std::span<const double>(cells));
  }
  std::vector<double> content() {
    std::vector<double> cells(field_.bytes() / sizeof(double));
    runtime_.copy(Buffer(std::span(cells)), field_);
    return cells;
  }

 private:
  Task<bool> work(std::uint64_t times) {
    if (kernel_.submit({{epoch_ + 1, times, ++items_, 0}}) != Status::ok) co_return false;
    epoch_ += times;
    Op finish;
    Promise<> told;
    Future<> either = told.future();
    told_ = &told;
    finish.delivered = {[](void* self, const OpResult&) noexcept { static_cast<Side*>(self)->tell(); }, this};
    Op end;
    end.delivered = finish.delivered;
    static_cast<void>(finished_.post_when(finish, items_, Worker::kForever));
    static_cast<void>(kernel_.post_ended(end));
    co_await either;
    const bool done = !finish.pending();
    if (finish.pending()) finish.detach();
    if (end.pending()) end.detach();
    co_return done;
  }
  void tell() {
    if (told_ != nullptr) std::exchange(told_, nullptr)->deliver();
  }

  Runtime& runtime_;
  HaloExchange exchange_;
  Memory field_;
  Buffer buffer_;
  Notifier notifier_;
  Bell together_;
  Bell finished_;
  PersistentKernel kernel_;
  Promise<>* told_ = nullptr;
  std::uint64_t epoch_ = 0;
  std::uint64_t items_ = 0;
};

struct Case {
  const char* name;
  int ranks;
  HaloOptions options;
};
/// Faces of several chunks.
constexpr HaloOptions options_of(int ranks, HaloMode mode, HaloMessages messages, bool periodic = true) {
  return {.grid = {40, 30, 20},
          .divide = {ranks == 4 ? 2 : 1, ranks == 4 ? 2 : ranks, 1},
          .periodic = {periodic, periodic, periodic},
          .ghost = {1, 1, 2},
          .variables = 3,
          .mode = mode,
          .messages = messages};
}
std::deque<Side> sides_of(InProcessJob& job, int ranks, const HaloOptions& options) {
  std::deque<Side> sides;
  for (int rank = 0; rank < ranks; ++rank) sides.emplace_back(job.rank(rank), options);
  return sides;
}
template <typename Step>
void together(InProcessJob& job, std::deque<Side>& sides, Step&& step) {
  std::vector<Task<void>> tasks;
  tasks.reserve(sides.size());
  for (Side& side : sides) tasks.push_back(step(side));
  for (Task<void>& task : tasks) task.start();
  ASSERT_TRUE(job.run_until(
      [&] { return std::all_of(tasks.begin(), tasks.end(), [](const Task<void>& task) { return task.finished(); }); }));
  for (Task<void>& task : tasks) task.take();
}

class HaloGuests : public testing::TestWithParam<Case> {};

TEST_P(HaloGuests, fill_the_ghosts_that_mode_fused_fills) {
  const auto& [name, ranks, options] = GetParam();
  InProcessJob job(test::ranks(ranks, GpuChoice::emulated));
  HaloOptions plain = options;
  plain.mode = HaloMode::fused;
  plain.messages = HaloMessages::per_process;
  plain.first_channel = ChannelId{16};
  std::deque<Side> guests = sides_of(job, ranks, options);
  std::deque<Side> expected = sides_of(job, ranks, plain);
  together(job, guests, [](Side& side) { return side.bind(); });
  if (HasFatalFailure()) return;
  for (Side& side : guests) side.launch(std::chrono::seconds(30));
  int cycle = 0;
  for (const std::uint64_t times : {1u, 5u, 2u}) {
    ++cycle;
    for (int rank = 0; rank < ranks; ++rank) {
      guests[static_cast<std::size_t>(rank)].fill(cycle);
      expected[static_cast<std::size_t>(rank)].fill(cycle);
    }
    together(job, guests, [times](Side& side) { return side.by_guest(times); });
    if (HasFatalFailure()) return;
    together(job, expected, [](Side& side) { return side.by_library(); });
    if (HasFatalFailure()) return;
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(guests[static_cast<std::size_t>(rank)].content(), expected[static_cast<std::size_t>(rank)].content())
          << "rank " << rank << ", cycle " << cycle;
    }
  }
}

constexpr auto kWhole = HaloMessages::per_process;
constexpr auto kEach = HaloMessages::per_block;
INSTANTIATE_TEST_SUITE_P(Modes, HaloGuests,
                         testing::Values(Case{"stream_alone", 1, options_of(1, HaloMode::stream, kWhole)},
                                         Case{"stream_to_itself", 1,
                                              options_of(1, HaloMode::stream, HaloMessages::all)},
                                         Case{"stream_two", 2, options_of(2, HaloMode::stream, kWhole)},
                                         Case{"stream_two_open", 2, options_of(2, HaloMode::stream, kWhole, false)},
                                         Case{"stream_four", 4, options_of(4, HaloMode::stream, kWhole)},
                                         Case{"stream_four_per_block", 4, options_of(4, HaloMode::stream, kEach)},
                                         Case{"stacked_two_per_block", 2, options_of(2, HaloMode::stacked, kEach)},
                                         Case{"stacked_four_open", 4, options_of(4, HaloMode::stacked, kWhole, false)}),
                         [](const auto& test) { return std::string(test.param.name); });

/// The kernels of the library count the same exchanges as a kernel of the program.
TEST(HaloGuest, takes_turns_with_the_kernels_of_the_library) {
  InProcessJob job(test::ranks(2, GpuChoice::emulated));
  std::deque<Side> sides = sides_of(job, 2, options_of(2, HaloMode::stream, kWhole));
  for (Side& side : sides) side.fill(1);
  together(job, sides, [](Side& side) { return side.by_library(); });
  if (testing::Test::HasFatalFailure()) return;
  const std::array expected = {sides[0].content(), sides[1].content()};
  for (Side& side : sides) {
    side.launch(std::chrono::seconds(30));
    side.skip(1);
    side.fill(1);
  }
  together(job, sides, [](Side& side) { return side.by_guest(2); });
  if (testing::Test::HasFatalFailure()) return;
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(sides[i].content(), expected[i]) << "rank " << i;
  for (Side& side : sides) side.fill(1);
  together(job, sides, [](Side& side) { return side.by_library(); });
  if (testing::Test::HasFatalFailure()) return;
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(sides[i].content(), expected[i]) << "rank " << i;
}

TEST(HaloGuest, is_refused_where_no_messages_of_a_device_are) {
  InProcessJob job(test::ranks(1, GpuChoice::emulated));
  const auto ask = [](HaloExchange& exchange, unsigned blocks) {
    return refused([&] { static_cast<void>(exchange.device_messages(blocks)); });
  };
  Side early(job.rank(0), options_of(1, HaloMode::stream, kWhole));
  EXPECT_EQ(ask(early.exchange(), 3).find("invalid_argument: halo: no kernel can exchange before bind"), 0u);
  job.rank(0).run(early.bind());
  EXPECT_EQ(ask(early.exchange(), 0).find("invalid_argument: halo: a kernel of 0 blocks"), 0u);
  EXPECT_EQ(ask(early.exchange(), 65536).find("invalid_argument: halo: a kernel of 65536 blocks"), 0u);
  EXPECT_EQ(ask(early.exchange(), 3), "not refused");
  EXPECT_EQ(refused([&] { static_cast<void>(early.exchange().device(3)); }).find("not_supported: halo: kernels of the"),
            0u);
  HaloOptions direct = options_of(1, HaloMode::direct, kWhole);
  direct.first_channel = ChannelId{8};
  Side other(job.rank(0), direct);
  job.rank(0).run(other.bind());
  EXPECT_EQ(ask(other.exchange(), 3).find("not_supported: halo: kernels of the program exchange"), 0u);
  HaloOptions host = options_of(1, HaloMode::stacked, kWhole);
  host.first_channel = ChannelId{16};
  HaloExchange in_host(job.rank(0), host);
  const Memory field = job.rank(0).allocate(MemoryKind::host, in_host.field_bytes(0));
  const Buffer fields[] = {field};
  job.rank(0).run(in_host.bind(fields));
  EXPECT_EQ(ask(in_host, 3).find("not_supported: halo: kernels of the program exchange"), 0u);
}

/// Until rank 0 has failed.
std::string failure_of(InProcessJob& job, Task<void>& run) {
  EXPECT_TRUE(job.run_until([&] { return run.finished(); }));
  return refused([&] { run.take(); });
}

TEST(HaloGuest, gives_up_and_names_who_has_sent_nothing) {
  InProcessJob job(test::ranks(2, GpuChoice::emulated));
  HaloOptions options = options_of(2, HaloMode::stream, kWhole);
  options.patience = std::chrono::milliseconds(200);
  std::deque<Side> sides = sides_of(job, 2, options);
  together(job, sides, [](Side& side) { return side.bind(); });
  if (testing::Test::HasFatalFailure()) return;
  sides[0].launch(std::chrono::milliseconds(100));
  Task<void> run = sides[0].by_guest(3);
  run.start();
  const std::string why = failure_of(job, run);
  EXPECT_EQ(
      why.find("timed_out: halo: the exchange 1 of mode stream was given up: no cells have come from rank 1, those "
               "of block 1 for block 0 first"),
      0u)
      << why;
  EXPECT_EQ(refused([&] { job.rank(0).run(sides[0].by_guest(1)); }), why);  // it stays so
}

TEST(HaloGuest, ends_and_names_the_process_that_has_ended) {
  InProcessJob job(test::ranks(2, GpuChoice::emulated));
  std::deque<Side> sides = sides_of(job, 2, options_of(2, HaloMode::stacked, kWhole));
  together(job, sides, [](Side& side) { return side.bind(); });
  if (testing::Test::HasFatalFailure()) return;
  for (Side& side : sides) side.launch(std::chrono::seconds(30));
  together(job, sides, [](Side& side) { return side.by_guest(2); });
  if (testing::Test::HasFatalFailure()) return;
  Task<void> run = sides[0].by_guest(1000);
  run.start();
  job.run(10);
  ASSERT_FALSE(run.finished());
  sides.pop_back();
  job.rank(1).worker().engine().shut_down();
  const std::string why = failure_of(job, run);
  EXPECT_NE(why.find("peer_lost: halo: the "), std::string::npos) << why;
  EXPECT_NE(why.find("rank 1"), std::string::npos) << why;
}

TEST(HaloGuest, leaves_no_kernel_behind_when_it_is_abandoned) {
  InProcessJob job(test::ranks(2, GpuChoice::emulated));
  std::deque<Side> sides = sides_of(job, 2, options_of(2, HaloMode::stream, kWhole));
  together(job, sides, [](Side& side) { return side.bind(); });
  if (testing::Test::HasFatalFailure()) return;
  sides[0].launch(std::chrono::seconds(30));
  {
    Task<void> run = sides[0].by_guest(7);
    run.start();
    job.run(10);
    ASSERT_FALSE(run.finished());
  }
  const std::string again = refused([&] { job.rank(0).run(sides[0].by_guest(1)); });
  EXPECT_NE(again.find("canceled: halo: "), std::string::npos) << again;
}

}  // namespace
}  // namespace brant
