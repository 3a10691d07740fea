// What kernels do in the global space, on threads of the CPU: each of them is a kernel of one member.
#include "brant/pgas/device_window.cuh"

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/pgas.h"
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

/// Memory of so many members.
class Members {
 public:
  explicit Members(unsigned members, std::size_t bytes = 4096) : parts_(members, std::vector<Word>(bytes / 8)) {}

  [[nodiscard]] DeviceWindow window(unsigned member) {
    DeviceWindow window;
    for (std::size_t i = 0; i < parts_.size(); ++i) window.bases[i] = parts_[i].data();
    window.bytes = parts_[0].size() * 8;
    window.member = member;
    window.members = static_cast<unsigned>(parts_.size());
    return window;
  }
  [[nodiscard]] Word& word(unsigned member, Word offset) { return parts_[member][offset / 8]; }

  /// One thread for each member.
  void run(const std::function<void(CpuThread&, const DeviceWindow&)>& kernel) {
    std::vector<std::thread> threads;
    threads.reserve(parts_.size());
    for (unsigned member = 0; member < parts_.size(); ++member) {
      threads.emplace_back([&, member] {
        CpuThread machine = thread_of_host();
        kernel(machine, window(member));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::vector<std::vector<Word>> parts_;
};

constexpr Word kFlag = 0, kBack = 8, kData = 256, kBarrier = 1024;

TEST(DeviceWindow, a_notified_member_has_the_bytes) {
  const Word rounds = static_cast<Word>(effort(2000, 100));
  Members members(2);
  members.run([&](CpuThread& machine, const DeviceWindow& window) {
    const unsigned other = 1 - window.member;
    std::array<Word, 9> mine{};
    for (Word epoch = 1; epoch <= rounds; ++epoch) {
      mine.fill(epoch * 10 + window.member);
      pgas::put_notify(machine, KernelControl{}, window, other, kData, mine.data(), sizeof(mine), kFlag, epoch);
      ASSERT_EQ(pgas::wait(machine, KernelControl{}, window, kFlag, epoch), Waited::rung);
      for (Word i = 0; i < 9; ++i) ASSERT_EQ(members.word(window.member, kData + i * 8), epoch * 10 + other);
      pgas::notify_member(machine, KernelControl{}, window, other, kBack, epoch);  // it may be written over
      ASSERT_EQ(pgas::wait(machine, KernelControl{}, window, kBack, epoch), Waited::rung);
    }
  });
}

TEST(DeviceWindow, a_ring_tells_of_all_that_was_put_before_it) {
  const Word rounds = static_cast<Word>(effort(1000, 50));
  Members members(2);
  members.run([&](CpuThread& machine, const DeviceWindow& window) {
    for (Word epoch = 1; epoch <= rounds; ++epoch) {
      if (window.member == 0) {
        pgas::put(machine, KernelControl{}, window, 1, kData, &epoch, sizeof(epoch));
        pgas::put(machine, KernelControl{}, window, 1, kData + 512, &epoch, sizeof(epoch));
        pgas::notify_member(machine, KernelControl{}, window, 1, kFlag, epoch);
        ASSERT_EQ(pgas::wait(machine, KernelControl{}, window, kBack, epoch), Waited::rung);
      } else {
        ASSERT_EQ(pgas::wait(machine, KernelControl{}, window, kFlag, epoch), Waited::rung);
        Word first = 0, second = 0;
        pgas::get(machine, KernelControl{}, window, 1, kData, &first, sizeof(first));
        pgas::get(machine, KernelControl{}, window, 1, kData + 512, &second, sizeof(second));
        ASSERT_EQ(first, epoch);
        ASSERT_EQ(second, epoch);
        pgas::notify_member(machine, KernelControl{}, window, 0, kBack, epoch);
      }
    }
  });
}

TEST(DeviceWindow, nobody_leaves_a_barrier_before_all_have_come) {
  const Word rounds = static_cast<Word>(effort(50, 10));
  for (const unsigned count : {1u, 2u, 4u}) {
    Members members(count);
    members.run([&](CpuThread& machine, const DeviceWindow& window) {
      for (Word epoch = 1; epoch <= rounds; ++epoch) {
        members.word(window.member, kData) = epoch;  // plain: the barrier orders it
        ASSERT_EQ(pgas::barrier(machine, KernelControl{}, window, kBarrier, 2 * epoch - 1), Waited::rung);
        for (unsigned member = 0; member < count; ++member) ASSERT_EQ(members.word(member, kData), epoch);
        ASSERT_EQ(pgas::barrier(machine, KernelControl{}, window, kBarrier, 2 * epoch), Waited::rung);
      }
    });
  }
}

TEST(DeviceWindow, atomics_of_all_members_add_up) {
  const Word rounds = static_cast<Word>(effort(2000, 200));
  Members members(4);
  std::array<std::atomic<Word>, 4> swapped{};
  members.run([&](CpuThread& machine, const DeviceWindow& window) {
    for (Word i = 0; i < rounds; ++i) {
      Word sum = 0;
      ASSERT_EQ(pgas::fetch_add(machine, KernelControl{}, window, 2, kData, 3, sum), Waited::rung);
      for (Word seen = 0;;) {  // one more, by compare and swap
        Word before = 0;
        ASSERT_EQ(pgas::compare_swap(machine, KernelControl{}, window, 1, kData, seen, seen + 1, before), Waited::rung);
        if (before == seen) break;
        seen = before;
      }
      ++swapped[window.member];
    }
  });
  EXPECT_EQ(members.word(2, kData), Word{12} * rounds);
  EXPECT_EQ(members.word(1, kData), 4 * rounds);
}

TEST(DeviceWindow, every_atomic_does_what_the_model_says) {
  Members members(2);
  CpuThread machine = thread_of_host();
  for (const AtomicCase& each : atomic_cases()) {
    members.word(1, kData) = ~Word{0};
    std::memcpy(&members.word(1, kData), &each.before, each.what.bytes());
    std::uint64_t told = 0, after = 0;
    ASSERT_EQ(window_atomic(machine, members.window(0), 1, kData, each.what, told), Waited::rung) << each.name;
    std::memcpy(&after, &members.word(1, kData), each.what.bytes());
    ASSERT_EQ(told, told_by(each)) << each.name;
    ASSERT_EQ(after, each.after) << each.name;
    ASSERT_EQ(each.what.bytes() == 4 ? members.word(1, kData) >> 32 : 0xffffffff, 0xffffffff) << each.name;
  }
}

TEST(DeviceWindow, sums_and_extremes_of_all_types_lose_nothing) {
  const int rounds = static_cast<int>(effort(1000, 100));
  Members members(4);
  members.run([&](CpuThread& machine, const DeviceWindow& window) {
    for (int i = 0; i < rounds; ++i) {
      double sum = 0;
      float relaxed = 0;
      int least = 0;
      std::uint32_t seen = 0;
      const KernelControl control;
      const int mine = -(i * 4 + static_cast<int>(window.member));
      ASSERT_EQ(pgas::fetch_add(machine, control, window, 2, kData, 0.5, sum), Waited::rung);
      ASSERT_EQ(pgas::fetch_add_relaxed(machine, control, window, 1, kData, 2, relaxed), Waited::rung);
      ASSERT_EQ(pgas::fetch(machine, control, window, 3, kData, AtomicOp::min, mine, least), Waited::rung);
      ASSERT_EQ(pgas::fetch_add(machine, control, window, 3, kData + 4, 1, seen), Waited::rung);
      ASSERT_EQ(pgas::atomic<std::uint32_t>(machine, control, window, 0, kData, AtomicOp::bit_or, 1u << window.member),
                Waited::rung);
    }
  });
  EXPECT_EQ(std::bit_cast<double>(members.word(2, kData)), 2.0 * rounds);
  EXPECT_EQ(*pgas::peer_pointer<float>(members.window(0), 1, kData), 8.0f * static_cast<float>(rounds));
  EXPECT_EQ(*pgas::peer_pointer<int>(members.window(0), 3, kData), -(rounds * 4 - 1));
  EXPECT_EQ(*pgas::peer_pointer<std::uint32_t>(members.window(0), 3, kData + 4),
            static_cast<std::uint32_t>(4 * rounds));
  EXPECT_EQ(members.word(0, kData), 0xfu);
}

/// Counts the bytes of words that are loaded as what others may write meanwhile.
class Observed : public CpuThread {
 public:
  using CpuThread::CpuThread;

  Word load_relaxed(const Word* from) {
    loaded += sizeof(Word);
    return CpuThread::load_relaxed(from);
  }
  simt::Pair load_line(const Word* from) {
    loaded += 2 * sizeof(Word);
    return CpuThread::load_line(from);
  }

  Word loaded = 0;
};

/// A kernel that gets the same bytes again and again sees what others write: no load of it may come from a cache of its
/// own, whatever the alignment.
TEST(DeviceWindow, a_get_loads_what_others_may_write_meanwhile) {
  Members members(2);
  const DeviceWindow window = members.window(0);
  alignas(16) std::array<unsigned char, 1024> landing{};
  for (Word i = 0; i < 128; ++i) members.word(1, kData + i * 8) = i;
  for (const Word from : {Word{0}, Word{8}, Word{1}}) {
    for (const Word bytes : {Word{1}, Word{8}, Word{16}, Word{47}, Word{800}}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes from " << from);
      Observed machine([](void* pointer) noexcept { return pointer; });
      landing.fill(0xff);
      ASSERT_EQ(pgas::get(machine, KernelControl{}, window, 1, kData + from, landing.data(), bytes), Waited::rung);
      EXPECT_EQ(machine.loaded, from % 8 == 0 ? bytes / 8 * 8 : 0) << "single bytes are another test's: the PTX's";
      EXPECT_EQ(std::memcmp(landing.data(), pgas::peer_pointer<unsigned char>(window, 1, kData + from), bytes), 0);
      EXPECT_EQ(landing[bytes], 0xff) << "behind them";
    }
  }
}

TEST(DeviceWindow, a_wait_ends_when_its_patience_is_over) {
  Members members(2);
  CpuThread machine = thread_of_host();
  KernelControl control;
  control.patience_ns = 1'000'000;
  EXPECT_EQ(pgas::wait(machine, control, members.window(0), kFlag, 1), Waited::timed_out);
  EXPECT_EQ(pgas::barrier(machine, control, members.window(0), kBarrier, 1), Waited::timed_out);
  EXPECT_FALSE(pgas::test(machine, members.window(0), kFlag, 1));
}

TEST(DeviceWindow, is_made_of_places_that_the_device_reaches) {
  InProcessJob job(ranks(2, GpuChoice::emulated));
  GlobalSpace here(job.rank(1)), there(job.rank(0));
  GlobalSegment mine = here.create(MemoryKind::emulated, 1 << 16);
  GlobalSegment theirs = there.create(MemoryKind::emulated, 1 << 16);
  const std::array places = {theirs.begin(), mine.begin()};
  EXPECT_THROW(static_cast<void>(here.window(places, 4096)), Error) << "not reached yet";
  ASSERT_TRUE(job.outcome(here.reach(theirs.begin())).ok());
  const DeviceWindow window = here.window(places, 4096);
  EXPECT_EQ(window.member, 1u);
  EXPECT_EQ(window.members, 2u);
  EXPECT_EQ(window.bases[1], mine.memory().data);
  EXPECT_NE(window.bases[0], nullptr);
  EXPECT_THROW(static_cast<void>(here.window(places, 1 << 17)), Error) << "larger than the segments";
  EXPECT_THROW(static_cast<void>(here.window(std::span(places).first(1), 4096)), Error) << "without this process";
  EXPECT_THROW(static_cast<void>(here.window({}, 4096)), Error);
  const std::array twice = {mine.begin(), theirs.begin(), theirs.begin() + 4096};
  EXPECT_THROW(static_cast<void>(here.window(twice, 4096)), Error) << "a process is one member";
  const std::array odd = {theirs.begin(), mine.begin() + 8};
  EXPECT_THROW(static_cast<void>(here.window(odd, 4096)), Error) << "not aligned";
  theirs = {};  // before the spaces go one after the other, in one thread
  job.run(50);
}

}  // namespace
}  // namespace brant::test
