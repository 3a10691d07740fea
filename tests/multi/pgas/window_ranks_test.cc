// Runs as every rank of a job (`brant run -n N`) with emulated devices: what kernels, which are threads of the CPU
// here, do in a window over all ranks. With BRANT_TEST_OWN_HOSTS=1 each rank is a host of its own, nothing is mapped,
// and all goes by the ring and the real network.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/collectives.h"
#include "brant/coll/team.h"
#include "brant/pgas.h"
#include "brant/pgas/device_window.cuh"
#include "support/job_runtime.h"
#include "support/kernel_thread.h"
#include "support/own_host.h"

namespace brant {
namespace {

using notify::KernelControl;
using notify::Waited;
using pgas::DeviceWindow;
using simt::CpuThread;
using simt::Word;
using test::job;

/// Before the runtime is opened: no memory is shared, everything goes over UCX.
const bool g_own_host =  // NOLINT(bugprone-throwing-static-initialization): the test fails then
    std::getenv("BRANT_TEST_OWN_HOSTS") != nullptr && test::become_own_host();

constexpr std::size_t kBytes = 64 << 10;
constexpr Word kFlag = 0, kBack = 8, kSum = 16, kTicket = 24, kNumbers = 64, kData = 4096, kBarrier = 1024;

/// A window over all ranks. Pinned memory, since atomics reach no device memory of other hosts.
class WindowOfRanks : public testing::Test {
 protected:
  void SetUp() override {
    std::memset(segment_.memory().data, 0, kBytes);
    const GlobalPtr<std::byte> mine = segment_.begin();
    std::vector<GlobalPtr<std::byte>> places(static_cast<std::size_t>(job().size()));
    ASSERT_TRUE(
        team_.run(allgather(ConstBuffer(&mine, sizeof(mine), MemoryKind::host), Buffer(std::span(places)))).ok());
    for (const auto place : places) {
      const OpResult reached = job().wait_for(std::chrono::seconds(60), space_.reach(place));
      ASSERT_TRUE(reached.ok()) << status_name(reached.status);
    }
    window_ = space_.window(places, kBytes);
    ASSERT_TRUE(team_.run(barrier()).ok());
  }
  void TearDown() override { ASSERT_TRUE(team_.run(barrier()).ok()); }

  [[nodiscard]] Word* word(Word offset) {
    return reinterpret_cast<Word*>(static_cast<std::byte*>(segment_.memory().data) + offset);
  }
  /// Runs a kernel while the worker makes progress.
  void run(const std::function<void(CpuThread&)>& kernel) {
    std::atomic<bool> ended = false;
    std::thread thread([&] {
      CpuThread machine = test::thread_of_emulated();
      kernel(machine);
      ended = true;
    });
    EXPECT_EQ(job().worker().wait_until([&] { return ended.load(); }, std::chrono::seconds(90)), Status::ok);
    thread.join();
    EXPECT_EQ(space_.status_of(window_), Status::ok);
  }

  const unsigned self_ = static_cast<unsigned>(job().rank().value), size_ = static_cast<unsigned>(job().size());
  KernelControl control_{.patience_ns = 60'000'000'000};
  Team team_ = Team::world(job());
  GlobalSpace space_{job()};
  GlobalSegment segment_ = space_.create(MemoryKind::pinned, kBytes);
  DeviceWindow window_;
};

TEST_F(WindowOfRanks, goes_by_the_ring_between_hosts) {
  for (unsigned member = 0; member < size_; ++member)
    EXPECT_EQ(pgas::is_mapped(window_, member), !g_own_host || member == self_);
}

/// Litmus: who sees the flag sees the bytes, large and small.
TEST_F(WindowOfRanks, a_notified_member_has_the_bytes) {
  constexpr Word kRounds = 150;
  const unsigned right = (self_ + 1) % size_, left = (self_ + size_ - 1) % size_;
  std::vector<Word> mine(4000);
  run([&](CpuThread& machine) {
    for (Word epoch = 1; epoch <= kRounds; ++epoch) {
      const Word words = epoch % 3 == 0 ? mine.size() : epoch % 3 == 1 ? 8 : 9;
      std::ranges::fill(mine, epoch * 10 + self_);
      ASSERT_EQ(pgas::put(machine, control_, window_, right, kData, mine.data(), words * 8), Waited::rung);
      ASSERT_EQ(pgas::put_notify(machine, control_, window_, right, kData + 32768, mine.data(), 64, kFlag, epoch),
                Waited::rung);
      ASSERT_EQ(pgas::wait(machine, control_, window_, kFlag, epoch), Waited::rung);
      for (Word i = 0; i < words; ++i) ASSERT_EQ(word(kData)[i], epoch * 10 + left) << "word " << i;
      for (Word i = 0; i < 8; ++i) ASSERT_EQ(word(kData + 32768)[i], epoch * 10 + left) << "word " << i;
      ASSERT_EQ(pgas::notify_member(machine, control_, window_, left, kBack, epoch), Waited::rung);
      ASSERT_EQ(pgas::wait(machine, control_, window_, kBack, epoch), Waited::rung);
    }
  });
}

TEST_F(WindowOfRanks, gets_and_barriers_agree) {
  constexpr Word kRounds = 60;
  const unsigned right = (self_ + 1) % size_;
  std::vector<Word> seen(500);
  run([&](CpuThread& machine) {
    for (Word epoch = 1; epoch <= kRounds; ++epoch) {
      std::fill_n(word(kData), 500, epoch * 10 + self_);  // plain: the barrier orders it
      ASSERT_EQ(pgas::barrier(machine, control_, window_, kBarrier, 2 * epoch - 1), Waited::rung);
      ASSERT_EQ(pgas::get(machine, control_, window_, right, kData, seen.data(), 4000), Waited::rung);
      for (const Word each : seen) ASSERT_EQ(each, epoch * 10 + right);
      Word one = 0;
      ASSERT_EQ(pgas::get(machine, control_, window_, right, kData + 8, &one, 8), Waited::rung);
      ASSERT_EQ(one, epoch * 10 + right);
      ASSERT_EQ(pgas::barrier(machine, control_, window_, kBarrier, 2 * epoch), Waited::rung);
    }
  });
}

TEST_F(WindowOfRanks, atomics_add_up) {
  constexpr Word kRounds = 100;
  run([&](CpuThread& machine) {
    for (Word i = 0; i < kRounds; ++i) {
      Word before = 0;
      ASSERT_EQ(pgas::fetch_add(machine, control_, window_, 0, kSum, 3, before), Waited::rung);
      for (Word seen = 0;;) {  // one more, by compare and swap
        ASSERT_EQ(pgas::compare_swap(machine, control_, window_, size_ - 1, kTicket, seen, seen + 1, before),
                  Waited::rung);
        if (before == seen) break;
        seen = before;
      }
    }
    ASSERT_EQ(pgas::barrier(machine, control_, window_, kBarrier, 1), Waited::rung);
  });
  if (self_ == 0) {
    EXPECT_EQ(*word(kSum), 3 * kRounds * size_);
  }
  if (self_ == size_ - 1) {
    EXPECT_EQ(*word(kTicket), kRounds * size_);
  }
}

/// Words of 32 bits beside each other, and floating numbers.
TEST_F(WindowOfRanks, atomics_of_all_types_add_up) {
  constexpr int kRounds = 60;
  run([&](CpuThread& machine) {
    for (int i = 0; i < kRounds; ++i) {
      std::int32_t least = 0;
      std::uint32_t count = 0;
      float single = 0;
      double sum = 0;
      const std::int32_t mine = -(i * static_cast<int>(size_) + static_cast<int>(self_));
      ASSERT_EQ(pgas::fetch(machine, control_, window_, 0, kNumbers, AtomicOp::min, mine, least), Waited::rung);
      ASSERT_EQ(pgas::fetch_add(machine, control_, window_, 0, kNumbers + 4, 1, count), Waited::rung);
      ASSERT_EQ(pgas::fetch_add_relaxed(machine, control_, window_, 0, kNumbers + 8, 0.5f, single), Waited::rung);
      ASSERT_EQ(pgas::fetch_add(machine, control_, window_, 0, kNumbers + 16, 0.25, sum), Waited::rung);
      ASSERT_EQ(pgas::atomic<Word>(machine, control_, window_, 0, kNumbers + 24, AtomicOp::bit_or, Word{1} << self_),
                Waited::rung);
    }
    ASSERT_EQ(pgas::barrier(machine, control_, window_, kBarrier, 1), Waited::rung);
  });
  if (self_ != 0) return;
  const auto number = [&]<typename T>(T, Word offset) { return *pgas::peer_pointer<T>(window_, 0, kNumbers + offset); };
  const int all = kRounds * static_cast<int>(size_);
  EXPECT_EQ(number(std::int32_t{}, 0), -(all - 1));
  EXPECT_EQ(number(std::uint32_t{}, 4), static_cast<std::uint32_t>(all));
  EXPECT_EQ(number(float{}, 8), 0.5f * static_cast<float>(all));
  EXPECT_EQ(number(double{}, 16), 0.25 * all);
  EXPECT_EQ(number(Word{}, 24), (Word{1} << size_) - 1);
}

}  // namespace
}  // namespace brant
