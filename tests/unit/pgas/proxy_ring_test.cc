// Orders of kernels, on threads of the CPU: each is a kernel of one member that reaches its own memory alone, and
// beside each stands a thread that performs what it orders. The thread sanitizer watches both ends of the ring.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/atomic_word.h"
#include "brant/pgas/device_window.cuh"
#include "models/pgas/proxy_ring_end.h"
#include "support/effort.h"
#include "support/kernel_thread.h"

namespace brant::test {
namespace {

using notify::KernelControl;
using notify::Waited;
using pgas::DeviceWindow;
using pgas::ProxyAct;
using simt::CpuThread;
using simt::Word;

constexpr Word kFlag = 0, kBack = 8, kSum = 16, kData = 256, kBarrier = 1024;

/// Memory of members whose kernels have nothing mapped.
class Strangers {
 public:
  explicit Strangers(unsigned members) : parts_(members, std::vector<Word>(1024)) {
    for (unsigned i = 0; i < members; ++i) rings_.push_back(std::make_unique<Ring>());
  }

  [[nodiscard]] DeviceWindow window(unsigned member) {
    DeviceWindow window;
    window.bases[member] = parts_[member].data();
    window.bytes = parts_[0].size() * sizeof(Word);
    window.member = member;
    window.members = static_cast<unsigned>(parts_.size());
    window.ring = {&rings_[member]->host, &rings_[member]->device};
    return window;
  }
  [[nodiscard]] Word* word(unsigned member, Word offset) { return &parts_[member][offset / sizeof(Word)]; }
  [[nodiscard]] ProxyRingEnd& end(unsigned member) { return rings_[member]->end; }

  /// Performs the next order of a member. False: there is none.
  bool perform(unsigned member) {
    pgas::ProxyOrder order;
    if (!end(member).take(order)) return false;
    const auto to = static_cast<unsigned>(order.member);
    std::array<Word, pgas::kProxyPayloadWords> value{};
    void* const local = order.local != 0 ? reinterpret_cast<void*>(order.local) : value.data();
    switch (static_cast<ProxyAct>(order.act)) {
      case ProxyAct::put:
      case ProxyAct::put_notify:
        std::memcpy(word(to, order.place), order.local != 0 ? local : order.payload, order.bytes);
        break;
      case ProxyAct::get: std::memcpy(local, word(to, order.place), order.bytes); break;
      case ProxyAct::atomic: {
        const Atomic atomic{static_cast<AtomicOp>(order.payload[2]), static_cast<AtomicType>(order.payload[3]),
                            order.payload[0], order.payload[1]};
        value[0] = perform_atomic(reinterpret_cast<std::byte*>(parts_[to].data()) + order.place, atomic);
        break;
      }
      default: break;
    }
    const auto act = static_cast<ProxyAct>(order.act);
    if (act == ProxyAct::put_notify || act == ProxyAct::notify || act == ProxyAct::notify_of_barrier)
      std::atomic_ref(*word(to, order.flag)).store(order.epoch, std::memory_order_release);
    end(member).answer(order.turn, false, std::as_bytes(std::span(value)));
    return true;
  }

  /// `kernels` threads for each member, and one that performs.
  void run(unsigned kernels, const std::function<void(CpuThread&, const DeviceWindow&)>& kernel) {
    std::atomic<bool> over = false;
    std::vector<std::thread> performers, threads;
    for (unsigned member = 0; member < parts_.size(); ++member) {
      performers.emplace_back([&, member] {
        while (!over.load()) {
          if (!perform(member)) std::this_thread::yield();
        }
      });
      for (unsigned i = 0; i < kernels; ++i) {
        threads.emplace_back([&, member] {
          CpuThread machine = thread_of_host();
          kernel(machine, window(member));
        });
      }
    }
    for (std::thread& thread : threads) thread.join();
    over = true;
    for (std::thread& performer : performers) performer.join();
  }

 private:
  struct Ring {
    pgas::ProxyHostPart host{};
    pgas::ProxyDevicePart device{};
    ProxyRingEnd end{host};
  };
  std::vector<std::vector<Word>> parts_;
  std::vector<std::unique_ptr<Ring>> rings_;
};

/// 9 words go as they lie, 8 and fewer in the order.
TEST(ProxyRing, a_notified_member_has_the_bytes) {
  const Word rounds = static_cast<Word>(effort(1000, 50));
  for (const Word words : {Word{9}, Word{8}, Word{1}}) {
    Strangers members(2);
    members.run(1, [&](CpuThread& machine, const DeviceWindow& window) {
      const unsigned other = 1 - window.member;
      std::array<Word, 9> mine{};
      for (Word epoch = 1; epoch <= rounds; ++epoch) {
        mine.fill(epoch * 10 + window.member);
        ASSERT_EQ(
            pgas::put_notify(machine, KernelControl{}, window, other, kData, mine.data(), words * 8, kFlag, epoch),
            Waited::rung);
        ASSERT_EQ(pgas::wait(machine, KernelControl{}, window, kFlag, epoch), Waited::rung);
        for (Word i = 0; i < words; ++i) ASSERT_EQ(*members.word(window.member, kData + i * 8), epoch * 10 + other);
        // It may be written over, and what the other one has put may change.
        ASSERT_EQ(pgas::notify_member(machine, KernelControl{}, window, other, kBack, epoch), Waited::rung);
        ASSERT_EQ(pgas::wait(machine, KernelControl{}, window, kBack, epoch), Waited::rung);
      }
    });
  }
}

TEST(ProxyRing, what_was_put_is_got_behind_a_flush) {
  const Word rounds = static_cast<Word>(effort(500, 30));
  Strangers members(2);
  members.run(1, [&](CpuThread& machine, const DeviceWindow& window) {
    const unsigned other = 1 - window.member;
    std::array<Word, 20> mine{}, seen{};
    for (Word round = 1; round <= rounds; ++round) {
      const std::size_t words = round % 2 == 0 ? 20 : 5;
      mine.fill(round * 2 + window.member);
      ASSERT_EQ(pgas::put(machine, KernelControl{}, window, other, kData, mine.data(), words * 8), Waited::rung);
      ASSERT_EQ(pgas::flush(machine, KernelControl{}, window), Waited::rung);
      ASSERT_EQ(pgas::get(machine, KernelControl{}, window, other, kData, seen.data(), words * 8), Waited::rung);
      for (std::size_t i = 0; i < words; ++i) ASSERT_EQ(seen[i], mine[i]);
    }
  });
}

TEST(ProxyRing, nobody_leaves_a_barrier_before_all_have_come) {
  const Word rounds = static_cast<Word>(effort(50, 10));
  for (const unsigned count : {1u, 2u, 3u}) {
    Strangers members(count);
    members.run(1, [&](CpuThread& machine, const DeviceWindow& window) {
      for (Word epoch = 1; epoch <= rounds; ++epoch) {
        *members.word(window.member, kData) = epoch;  // plain: the barrier orders it
        ASSERT_EQ(pgas::barrier(machine, KernelControl{}, window, kBarrier, 2 * epoch - 1), Waited::rung);
        for (unsigned member = 0; member < count; ++member) {
          Word seen = 0;
          ASSERT_EQ(pgas::get(machine, KernelControl{}, window, member, kData, &seen, 8), Waited::rung);
          ASSERT_EQ(seen, epoch);
        }
        ASSERT_EQ(pgas::barrier(machine, KernelControl{}, window, kBarrier, 2 * epoch), Waited::rung);
      }
    });
  }
}

/// More threads than slots take part in one ring, so that they wait for each other's slots.
TEST(ProxyRing, atomics_of_many_threads_add_up) {
  const Word rounds = static_cast<Word>(effort(200, 20));
  constexpr unsigned kThreads = 8;
  Strangers members(2);
  members.run(kThreads, [&](CpuThread& machine, const DeviceWindow& window) {
    for (Word i = 0; i < rounds; ++i) {
      Word sum = 0;
      ASSERT_EQ(pgas::fetch_add(machine, KernelControl{}, window, 1, kSum, 3, sum), Waited::rung);
      for (Word seen = 0;;) {  // one more, by compare and swap
        Word before = 0;
        ASSERT_EQ(pgas::compare_swap(machine, KernelControl{}, window, 0, kSum, seen, seen + 1, before), Waited::rung);
        if (before == seen) break;
        seen = before;
      }
    }
  });
  EXPECT_EQ(*members.word(1, kSum), Word{2} * kThreads * rounds * 3);
  EXPECT_EQ(*members.word(0, kSum), Word{2} * kThreads * rounds);
}

KernelControl impatient() {
  KernelControl control;
  control.patience_ns = 2'000'000;
  return control;
}

TEST(ProxyRing, a_full_ring_makes_kernels_wait_as_long_as_they_may_and_goes_on_afterwards) {
  Strangers members(2);
  const DeviceWindow window = members.window(0);
  CpuThread machine = thread_of_host();
  for (Word epoch = 1; epoch <= pgas::kProxySlots; ++epoch)
    ASSERT_EQ(pgas::notify_member(machine, impatient(), window, 1, kFlag, epoch), Waited::rung);
  EXPECT_EQ(pgas::notify_member(machine, impatient(), window, 1, kFlag, 1000), Waited::timed_out);
  Word before = 0;
  EXPECT_EQ(pgas::fetch_add(machine, impatient(), window, 1, kSum, 1, before), Waited::timed_out);
  notify::Asked asked{};
  asked.abort = 1;
  KernelControl aborted;
  aborted.asked = &asked;
  EXPECT_EQ(pgas::put(machine, aborted, window, 1, kData, &before, 8), Waited::aborted);
  for (Word i = 0; i < pgas::kProxySlots; ++i) ASSERT_TRUE(members.perform(0));
  EXPECT_FALSE(members.perform(0)) << "who gave up has ordered nothing";
  EXPECT_EQ(*members.word(1, kFlag), pgas::kProxySlots);
  ASSERT_EQ(pgas::notify_member(machine, impatient(), window, 1, kFlag, 1001), Waited::rung);
  ASSERT_TRUE(members.perform(0));
  EXPECT_EQ(*members.word(1, kFlag), 1001u);
}

TEST(ProxyRing, the_slot_of_who_gave_up_an_answer_is_used_when_that_has_come) {
  Strangers members(2);
  const DeviceWindow window = members.window(0);
  CpuThread machine = thread_of_host();
  Word before = 7;
  EXPECT_EQ(pgas::fetch_add(machine, impatient(), window, 1, kSum, 1, before), Waited::timed_out);
  for (Word i = 1; i < pgas::kProxySlots; ++i)
    ASSERT_EQ(pgas::notify_member(machine, impatient(), window, 1, kFlag, i), Waited::rung);
  EXPECT_EQ(pgas::notify_member(machine, impatient(), window, 1, kFlag, 1000), Waited::timed_out);
  ASSERT_TRUE(members.perform(0));
  EXPECT_EQ(*members.word(1, kSum), 1u) << "it had been ordered";
  EXPECT_EQ(pgas::notify_member(machine, impatient(), window, 1, kFlag, 1000), Waited::rung);
}

TEST(ProxyRing, waits_end_when_the_window_is_lost) {
  Strangers members(2);
  const DeviceWindow window = members.window(0);
  std::array<std::thread, 3> kernels = {
      std::thread([&] {
        CpuThread machine = thread_of_host();
        EXPECT_EQ(pgas::wait(machine, KernelControl{}, window, kFlag, 1), Waited::aborted);
        EXPECT_EQ(pgas::wait(machine, KernelControl{}, window, kBack, 1), Waited::rung) << "it had come before";
      }),
      std::thread([&] {
        CpuThread machine = thread_of_host();
        Word before = 0;
        EXPECT_EQ(pgas::fetch_add(machine, KernelControl{}, window, 1, kSum, 1, before), Waited::aborted);
      }),
      std::thread([&] {
        CpuThread machine = thread_of_host();
        EXPECT_EQ(pgas::barrier(machine, KernelControl{}, window, kBarrier, 1), Waited::aborted);
      })};
  std::atomic_ref(*members.word(0, kBack)).store(1);
  members.end(0).set_fault();
  for (std::thread& kernel : kernels) kernel.join();
}

TEST(ProxyRing, an_answer_that_says_failed_ends_the_call_as_aborted) {
  Strangers members(2);
  const DeviceWindow window = members.window(0);
  std::thread kernel([&] {
    CpuThread machine = thread_of_host();
    EXPECT_EQ(pgas::flush(machine, KernelControl{}, window), Waited::aborted);
  });
  pgas::ProxyOrder order;
  while (!members.end(0).take(order)) std::this_thread::yield();
  EXPECT_EQ(static_cast<ProxyAct>(order.act), ProxyAct::flush);
  members.end(0).answer(order.turn, true, {});
  kernel.join();
}

}  // namespace
}  // namespace brant::test
