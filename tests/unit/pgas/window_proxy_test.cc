// Windows whose members the device does not reach: kernels on threads of the CPU, and the workers of two or three ranks
// that perform what they order.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/pgas.h"
#include "brant/pgas/device_window.cuh"
#include "core/engine.h"
#include "support/atomic_cases.h"
#include "support/effort.h"
#include "support/in_process_job.h"
#include "support/kernel_thread.h"
#include "support/window_atomic.h"

namespace brant::test {
namespace {

using notify::KernelControl;
using notify::Waited;
using pgas::DeviceWindow;
using simt::CpuThread;
using simt::Word;

constexpr std::size_t kBytes = 64 << 10;
constexpr Word kFlag = 0, kBack = 8, kSum = 16, kData = 4096, kBarrier = 1024;

JobOptions apart(int count) {
  JobOptions options = ranks(count, GpuChoice::emulated);
  options.links = false;
  options.exportable = [](const port::PointerInfo&) { return false; };  // nothing is mapped
  return options;
}

/// A window of pinned memory over all ranks, and a kernel's thread for each.
class Apart {
 public:
  explicit Apart(int count) : job_(apart(count)) {
    for (int rank = 0; rank < count; ++rank) {
      spaces_.push_back(std::make_unique<GlobalSpace>(job_.rank(rank)));
      segments_.push_back(spaces_.back()->create(MemoryKind::pinned, kBytes));
      std::fill_n(static_cast<std::byte*>(segments_.back().memory().data), kBytes, std::byte{0});
      places_.push_back(segments_.back().begin());
    }
    for (const auto& space : spaces_) {
      for (const auto place : places_) EXPECT_TRUE(job_.outcome(space->reach(place)).ok());
      windows_.push_back(space->window(places_, kBytes));
    }
  }
  ~Apart() {
    for (GlobalSegment& segment : segments_) segment = {};  // before the spaces go one after the other, in one thread
    job_.run(200);
  }
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;

  [[nodiscard]] InProcessJob& job() { return job_; }
  [[nodiscard]] GlobalSpace& space(std::size_t rank) { return *spaces_[rank]; }
  [[nodiscard]] GlobalSegment& segment(std::size_t rank) { return segments_[rank]; }
  [[nodiscard]] const DeviceWindow& window(std::size_t rank) const { return windows_[rank]; }
  [[nodiscard]] Word* word(std::size_t rank, Word offset) {
    return reinterpret_cast<Word*>(static_cast<std::byte*>(segments_[rank].memory().data) + offset);
  }

  void run(const std::function<void(CpuThread&, const DeviceWindow&)>& kernel) {
    std::atomic<std::size_t> ended = 0;
    std::vector<std::thread> threads;
    for (const DeviceWindow& window : windows_) {
      threads.emplace_back([&] {
        CpuThread machine = thread_of_emulated();
        kernel(machine, window);
        ++ended;
      });
    }
    EXPECT_TRUE(job_.run_until([&] { return ended.load() == windows_.size(); }));
    for (std::thread& thread : threads) thread.join();
  }

 private:
  InProcessJob job_;
  std::vector<std::unique_ptr<GlobalSpace>> spaces_;
  std::vector<GlobalSegment> segments_;
  std::vector<GlobalPtr<std::byte>> places_;
  std::vector<DeviceWindow> windows_;
};

TEST(WindowProxy, says_who_is_mapped) {
  Apart ranks(3);
  const DeviceWindow& window = ranks.window(1);
  EXPECT_EQ(window.member, 1u);
  EXPECT_TRUE(pgas::is_mapped(window, 1));
  EXPECT_FALSE(pgas::is_mapped(window, 0));
  EXPECT_NE(window.ring.host, nullptr);
  EXPECT_EQ(ranks.space(1).status_of(window), Status::ok);
}

TEST(WindowProxy, performs_puts_flags_gets_atomics_and_barriers) {
  const Word rounds = static_cast<Word>(effort(100, 10));
  Apart ranks(3);
  std::vector<std::vector<Word>> rows(3, std::vector<Word>(1000));
  ranks.run([&](CpuThread& machine, const DeviceWindow& window) {
    const unsigned right = (window.member + 1) % 3, left = (window.member + 2) % 3;
    std::vector<Word>& mine = rows[window.member];
    for (Word epoch = 1; epoch <= rounds; ++epoch) {
      const Word words = epoch % 3 == 0 ? 1000 : epoch % 3 == 1 ? 8 : 9;
      std::fill(mine.begin(), mine.end(), epoch * 10 + window.member);
      ASSERT_EQ(pgas::put_notify(machine, KernelControl{}, window, right, kData, mine.data(), words * 8, kFlag, epoch),
                Waited::rung);
      ASSERT_EQ(pgas::wait(machine, KernelControl{}, window, kFlag, epoch), Waited::rung);
      for (Word i = 0; i < words; ++i) ASSERT_EQ(ranks.word(window.member, kData)[i], epoch * 10 + left);
      ASSERT_EQ(pgas::notify_member(machine, KernelControl{}, window, left, kBack, epoch), Waited::rung);
      ASSERT_EQ(pgas::wait(machine, KernelControl{}, window, kBack, epoch), Waited::rung);
      Word before = 0;
      ASSERT_EQ(pgas::fetch_add(machine, KernelControl{}, window, 0, kSum, 1, before), Waited::rung);
      ASSERT_EQ(pgas::barrier(machine, KernelControl{}, window, kBarrier, 2 * epoch - 1), Waited::rung);
      Word sum = 0;
      ASSERT_EQ(pgas::get(machine, KernelControl{}, window, 0, kSum, &sum, sizeof(sum)), Waited::rung);
      ASSERT_EQ(sum, 3 * epoch);
      ASSERT_EQ(pgas::get(machine, KernelControl{}, window, right, kData, mine.data(), words * 8), Waited::rung);
      ASSERT_EQ(mine[words - 1], epoch * 10 + window.member);
      ASSERT_EQ(pgas::barrier(machine, KernelControl{}, window, kBarrier, 2 * epoch), Waited::rung);
    }
  });
}

TEST(WindowProxy, every_atomic_does_what_the_model_says) {
  const std::vector<AtomicCase> cases = atomic_cases();
  const std::size_t step = static_cast<std::size_t>(effort(1, 19));
  Apart ranks(2);
  ranks.run([&](CpuThread& machine, const DeviceWindow& window) {
    if (window.member == 1) return;
    for (std::size_t i = 0; i < cases.size(); i += step) {
      const AtomicCase& each = cases[i];
      Word there = ~Word{0};
      std::memcpy(&there, &each.before, each.what.bytes());
      machine.store_release(ranks.word(1, kSum), there);
      std::uint64_t told = 0, after = 0;
      ASSERT_EQ(window_atomic(machine, window, 1, kSum, each.what, told), Waited::rung) << each.name;
      there = machine.load_acquire(ranks.word(1, kSum));
      std::memcpy(&after, &there, each.what.bytes());
      ASSERT_EQ(told, told_by(each)) << each.name;
      ASSERT_EQ(after, each.after) << each.name;
      ASSERT_EQ(each.what.bytes() == 4 ? there >> 32 : 0xffffffff, 0xffffffff) << each.name;
    }
  });
}

TEST(WindowProxy, an_atomic_that_does_not_exist_loses_it) {
  struct Bad {
    Word place, operation, type;
  };
  constexpr auto kAdd = static_cast<Word>(AtomicOp::add), kXor = static_cast<Word>(AtomicOp::bit_xor);
  constexpr auto kU32 = static_cast<Word>(AtomicType::u32), kF64 = static_cast<Word>(AtomicType::f64);
  const Bad all[] = {{kSum, kXor, kF64},     {kSum, 10, kU32},       {kSum, kAdd, 6},      {kSum, kAdd, 256 + kU32},
                     {kSum + 2, kAdd, kU32}, {kSum + 4, kAdd, kF64}, {kBytes, kAdd, kU32}, {kBytes - 4, kAdd, kF64}};
  for (const Bad& bad : all) {
    SCOPED_TRACE(testing::Message() << bad.operation << " on " << bad.type << " at " << bad.place);
    Apart ranks(2);
    ranks.run([&](CpuThread& machine, const DeviceWindow& window) {
      if (window.member == 1) return;
      pgas::ProxyOrder order = pgas::detail::order_of(pgas::ProxyAct::atomic, 1, bad.place);
      order.payload[2] = bad.operation;
      order.payload[3] = bad.type;
      Word before = 0;
      EXPECT_EQ(pgas::detail::ask_proxy(machine, KernelControl{}, window.ring, order, &before, 1), Waited::aborted);
    });
    EXPECT_EQ(ranks.space(0).status_of(ranks.window(0)), Status::invalid_argument);
    EXPECT_EQ(*ranks.word(1, kSum), 0u);
  }
}

/// Many orders without a wait: more than a ring has slots.
TEST(WindowProxy, epochs_of_a_flag_come_in_their_order) {
  const Word rounds = static_cast<Word>(effort(2000, 200));
  Apart ranks(2);
  ranks.run([&](CpuThread& machine, const DeviceWindow& window) {
    if (window.member == 0) {
      for (Word epoch = 1; epoch <= rounds; ++epoch) {
        const Word place = kData + epoch % 16 * 8;
        ASSERT_EQ(pgas::put(machine, KernelControl{}, window, 1, place, &epoch, 8), Waited::rung);
        ASSERT_EQ(pgas::notify_member(machine, KernelControl{}, window, 1, kFlag, epoch), Waited::rung);
      }
      ASSERT_EQ(pgas::flush(machine, KernelControl{}, window), Waited::rung);
      return;
    }
    for (Word seen = 0; seen < rounds;) {
      const Word now = machine.load_acquire(ranks.word(1, kFlag));
      ASSERT_GE(now, seen) << "a flag only grows";
      if (now != seen) {
        ASSERT_GE(machine.load_acquire(ranks.word(1, kData + now % 16 * 8)), now) << "the bytes come before the flag";
      }
      seen = now;
      machine.pause();
    }
  });
}

TEST(WindowProxy, what_is_not_in_the_window_loses_it) {
  Apart ranks(2);
  ranks.run([&](CpuThread& machine, const DeviceWindow& window) {
    if (window.member == 1) return;
    Word word = 1;
    EXPECT_EQ(pgas::get(machine, KernelControl{}, window, 1, kBytes, &word, 8), Waited::aborted);
    EXPECT_EQ(pgas::wait(machine, KernelControl{}, window, kFlag, 1), Waited::aborted);
  });
  Rank lost{-1};
  EXPECT_EQ(ranks.space(0).status_of(ranks.window(0), &lost), Status::invalid_argument);
  EXPECT_EQ(lost, Rank{1});
  EXPECT_EQ(ranks.space(1).status_of(ranks.window(1)), Status::ok);
}

TEST(WindowProxy, a_null_pointer_loses_it_and_moves_nothing) {
  for (const bool is_put : {false, true}) {
    Apart ranks(2);
    std::fill_n(static_cast<std::byte*>(ranks.segment(1).memory().data), kBytes, std::byte{0x41});
    ranks.run([&](CpuThread& machine, const DeviceWindow& window) {
      if (window.member == 1) return;
      // So many bytes do not travel in the order.
      const Waited waited = is_put ? pgas::put(machine, KernelControl{}, window, 1, kData, nullptr, 4096)
                                   : pgas::get(machine, KernelControl{}, window, 1, kData, nullptr, 4096);
      EXPECT_EQ(waited, is_put ? Waited::rung : Waited::aborted);
      EXPECT_EQ(pgas::flush(machine, KernelControl{}, window), Waited::aborted);
    });
    EXPECT_EQ(ranks.space(0).status_of(ranks.window(0)), Status::invalid_argument);
    const auto* const bytes = reinterpret_cast<const std::byte*>(ranks.word(1, 0));
    EXPECT_TRUE(std::all_of(bytes, bytes + kBytes, [](std::byte byte) { return byte == std::byte{0x41}; }));
  }
}

/// The worker spins while orders come, and goes on looking for the next one when it sleeps.
TEST(WindowProxy, lets_its_process_sleep_while_no_orders_come) {
  Apart ranks(2);
  Worker& worker = ranks.job().rank(0).worker();
  const auto& sleeps = worker.engine().counters().sleeps;
  const auto slept_within = [&](std::chrono::milliseconds limit) {
    const std::uint64_t before = sleeps.read();
    return worker.wait_until([&] { return sleeps.read() != before; }, limit) == Status::ok;
  };
  EXPECT_TRUE(slept_within(std::chrono::seconds(10))) << "no kernel has used the window";
  for (int turn = 0; turn < 3; ++turn) {
    std::atomic<bool> ended = false;
    std::thread kernel([&] {
      CpuThread machine = thread_of_emulated();
      EXPECT_EQ(pgas::flush(machine, KernelControl{}, ranks.window(0)), Waited::rung);
      ended = true;
    });
    EXPECT_EQ(worker.wait_until([&] { return ended.load(); }, std::chrono::seconds(30)), Status::ok);
    kernel.join();
    EXPECT_TRUE(slept_within(std::chrono::seconds(10))) << "the kernel has ended";
  }
}

TEST(WindowProxy, gives_its_ring_back_when_it_is_closed) {
  Apart ranks(2);
  const auto is_there = [](const DeviceWindow& window) {
    return port::memory::EmulatedMemory::of_process().query(window.ring.device).ok();
  };
  const DeviceWindow window = ranks.window(0);
  ASSERT_TRUE(is_there(window));
  ranks.space(0).close_window(window);
  EXPECT_EQ(ranks.space(0).status_of(window), Status::not_found);
  ranks.job().run(10);
  ranks.job().rank(0).tidy();
  EXPECT_FALSE(is_there(window));
  EXPECT_EQ(ranks.space(0).status_of(window), Status::not_found);
  ranks.space(0).close_window(window);  // once more, which changes nothing
  EXPECT_EQ(ranks.space(1).status_of(ranks.window(1)), Status::ok);
}

TEST(WindowProxy, is_over_when_a_segment_of_it_is_retired) {
  Apart ranks(2);
  std::atomic<bool> waits = false;
  std::thread kernel([&] {
    CpuThread machine = thread_of_emulated();
    waits = true;
    EXPECT_EQ(pgas::wait(machine, KernelControl{}, ranks.window(0), kFlag, 1), Waited::aborted);
  });
  EXPECT_TRUE(ranks.job().run_until([&] { return waits.load(); }));
  ranks.segment(1) = {};
  EXPECT_TRUE(ranks.job().run_until([&] { return ranks.space(0).status_of(ranks.window(0)) != Status::ok; }));
  kernel.join();
  EXPECT_EQ(ranks.space(0).status_of(ranks.window(0)), Status::not_found);
  ranks.job().run(200);
  CpuThread late = thread_of_emulated();  // the ring stays until this process retires its own part
  EXPECT_EQ(pgas::wait(late, KernelControl{}, ranks.window(0), kFlag, 1), Waited::aborted);
}

}  // namespace
}  // namespace brant::test
