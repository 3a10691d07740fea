// Calls of chares, with and without data, broadcasts, reductions and moves, one allocation after the other failing: the
// caller is told, or the job ends with a text, or the error leaves the program's own loop. Nothing hangs or leaks.
#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/chare.h"
#include "conformance/moves/allocation_sweep.h"
#include "core/engine.h"
#include "models/chare/core.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::Fails;
using test::JobOptions;
using test::Program;
using test::ScarceMemory;

enum class Act { call, ask, call_with_data, call_with_landing, broadcast, reduction, move };

struct Case {
  Act act;
  const char* name;
  bool links;
};

constexpr Case kCases[] = {{Act::call, "call", false},
                           {Act::call, "call_linked", true},
                           {Act::ask, "ask", false},
                           {Act::call_with_data, "call_with_data", false},
                           {Act::call_with_data, "call_with_data_linked", true},
                           {Act::call_with_landing, "call_with_landing", false},
                           {Act::broadcast, "broadcast", false},
                           {Act::reduction, "reduction", false},
                           {Act::move, "move", false}};

constexpr int kElements = 4;
constexpr std::size_t kBytes = 50'000;

const detail::Handover& handover();

class Counting : public Chare<Counting, Index<1>> {
 public:
  Counting() = default;
  explicit Counting(int count) : count_(count) {}

  void add(int value) { count_ += value; }
  int count() { return count_; }
  void take(DeviceData data) { count_ += data.bytes() == kBytes ? 1 : 100; }
  void land(DeviceData data) { count_ += data.data() == landing_.data() ? 1 : 100; }
  Buffer post(Post<&Counting::land>, const DeviceMeta& meta) {
    landing_ = chares().runtime().allocate(MemoryKind::emulated, meta.bytes);
    return landing_;
  }
  void give_one(const Callback<int>& to) { contribute<reduce::Sum>(1, to); }
  void go(int to) { chares().core().moving().move(*this, to, handover()); }

  static std::vector<std::byte> pack(ChareBase& chare) {
    std::vector<std::byte> bytes(sizeof(int));
    WriteArchive write(bytes.data());
    write(static_cast<Counting&>(chare).count_);
    return bytes;
  }

 private:
  Memory landing_;
  int count_ = 0;
};

const detail::Handover& handover() {
  static const detail::Handover how{&detail::ConstructorOf<Counting, int>::get(), &Counting::pack};
  return how;
}

/// What becomes of one act.
struct Scene {
  Act act;
  unsigned nth;
  Fails fails;
  std::optional<ScarceMemory> scarce{};
  bool failed = false;
  bool thrown = false;  ///< The caller was told.
  bool ended_well = false;
  int result = -1;

  void begin() { scarce.emplace(nth, fails); }
  void end() {
    if (!scarce) return;
    failed = scarce->failed();
    scarce.reset();
  }
};

/// Of what the act has done, all elements together.
Task<int> act(Chares& chares, Array<Counting> counting, const Memory& memory, Scene& scene) {
  switch (scene.act) {
    case Act::call: counting[{1}].call<&Counting::add>(1); break;
    case Act::ask: co_return co_await counting[{1}].ask<&Counting::count>() + 1;
    case Act::call_with_data: counting[{1}].call<&Counting::take>(device(memory.part(0, kBytes))); break;
    case Act::call_with_landing: counting[{1}].call<&Counting::land>(device(memory.part(0, kBytes))); break;
    case Act::broadcast: counting.call<&Counting::add>(1); break;
    case Act::move: counting[{1}].call<&Counting::go>(0); break;
    case Act::reduction: {
      auto asked = future_callback<int>(chares);
      counting.call<&Counting::give_one>(asked.to);
      const int sum = co_await asked.future;
      co_return sum;
    }
  }
  co_await chares.quiescence();
  scene.end();
  int all = 0;
  for (int i = 0; i < kElements; ++i) all += co_await counting[{i}].ask<&Counting::count>();
  co_return all;
}

int expected(Act act) {
  if (act == Act::broadcast || act == Act::reduction) return kElements;
  return act == Act::move ? 0 : 1;
}

Task<void> play(Chares& chares, Scene& scene) {
  const Memory memory = chares.runtime().allocate(MemoryKind::emulated, kBytes);
  const auto counting = create_array<Counting>(chares, kElements, Placement::round_robin());
  for (int i = 0; i < kElements; ++i) co_await counting[{i}].ask<&Counting::count>();
  try {
    scene.begin();
    scene.result = co_await act(chares, counting, memory, scene);
  } catch (const std::exception&) {
    scene.thrown = true;
  }
  scene.end();
}

/// The ranks by turns, as long as they have something to do.
class Run {
 public:
  Run(Program& program, Scene& scene) : program_(program), scene_(scene) {
    program_.rank(0).start(play(program_.rank(0), scene_));
  }
  /// False: an error left a rank's loop. Then its process ends.
  bool step() {
    for (int rank = 0; rank < 2; ++rank) {
      try {
        if (program_.rank(rank).progress() != 0) idle_ = 0;
      } catch (const std::exception&) {
        return false;
      }
    }
    if (++idle_ % 16 == 0) std::this_thread::yield();
    return true;
  }
  [[nodiscard]] bool ended() const { return program_.rank(0).ended() && program_.rank(1).ended(); }
  /// A rank has failed, and could not tell the other one: that one will hear of the end of its process.
  [[nodiscard]] bool one_failed() const {
    return (program_.rank(0).ended() && program_.rank(0).exit_code() != 0) ||
           (program_.rank(1).ended() && program_.rank(1).exit_code() != 0);
  }
  [[nodiscard]] unsigned idle() const noexcept { return idle_; }
  /// As if either process had ended in the eyes of the other: all data that is under way ends, and copies of devices
  /// do.
  void part() {
    for (const int rank : {0, 1}) {
      Peers& peers = engine(rank).peers();
      if (!peers[1 - rank].lost) peers.suspect(peers[1 - rank]);
    }
    const TimePoint until = deadline_after(std::chrono::seconds(10));
    do {
      for (int round = 0; round < 50; ++round) static_cast<void>(step());
    } while (!(is_idle(0) && is_idle(1)) && Clock::now() < until);
  }

 private:
  Engine& engine(int rank) { return program_.rank(rank).core().context().engine; }
  bool is_idle(int rank) {
    const bool sends = !engine(rank).service<lane::DataLanes>().sources_idle();
    return !sends && engine(rank).service<ChannelTable>().pools().live() == 0;
  }

  Program& program_;
  Scene& scene_;
  unsigned idle_ = 0;
};

void run(Program& program, Scene& scene) {
  constexpr unsigned kIdle = 2'000, kNever = 400'000;
  Run run(program, scene);
  while (!run.ended()) {
    const bool goes_on = run.step();
    // Enough of it: whoever still waits for memory gets it.
    if (!goes_on || run.idle() == kIdle) scene.end();
    if (run.idle() > kIdle && run.one_failed()) break;
    if (!goes_on) {
      EXPECT_TRUE(scene.failed);
      return run.part();
    }
    if (run.idle() == kNever) {
      ADD_FAILURE() << "never ends";
      return;
    }
  }
  scene.end();
  // The process of a rank that has failed ends, and so the data that it had still to send never comes.
  if (run.one_failed() || !run.ended()) run.part();
  scene.ended_well = !run.one_failed();
  if (scene.ended_well && !scene.thrown) {
    EXPECT_EQ(scene.result, expected(scene.act));
  } else {
    EXPECT_TRUE(scene.failed) << program.failure();
    EXPECT_TRUE(scene.thrown || !program.failure().empty()) << "nobody says why";
  }
}

class ChareMemorySweep : public testing::TestWithParam<Case> {};

TEST_P(ChareMemorySweep, somebody_is_told_and_the_job_ends) {
  for (const Fails fails : {Fails::once, Fails::from_then_on}) {
    SCOPED_TRACE(fails == Fails::once ? "once" : "for good");
    test::sweep_allocations([&](unsigned nth) {
      std::array<test::DeviceFaults, 2> faults;
      Scene scene{GetParam().act, nth, fails};
      {
        JobOptions options;
        options.links = GetParam().links;
        options.gpu = GpuChoice::emulated;
        options.wrap_device = [&](int rank, std::unique_ptr<port::Device> device) {
          faults[static_cast<std::size_t>(rank)].scarce = &ScarceMemory::refuses;
          return test::make_faulty(std::move(device), faults[static_cast<std::size_t>(rank)]);
        };
        Program program(options);
        run(program, scene);
      }
      // What was under way when a job fails goes with its processes.
      for (const std::size_t rank : {0u, 1u}) {
        EXPECT_TRUE(!scene.ended_well || faults[rank].allocated == 0) << "of rank " << rank;
      }
      return scene.failed;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Moves, ChareMemorySweep, testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace brant
