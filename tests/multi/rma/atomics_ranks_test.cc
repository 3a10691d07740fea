// Runs as every rank of a job (`brant run -n N`): atomics of all ranks on the same words, of every kind of memory and
// by every way. The same program serves host memory, the emulated device and CUDA: BRANT_GPU decides.
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "multi/rma/ring.h"
#include "support/atomic_cases.h"
#include "support/effort.h"

namespace brant {
namespace {

using test::fill;
using test::image_of;
using test::job;
using test::kinds;
using test::Ring;
using test::wait_for;

constexpr std::size_t kWord = sizeof(std::uint64_t);

/// Memory of rank 0 that all ranks reach, rank 0 included. All make it together.
class Common {
 public:
  Common(MemoryKind kind, std::size_t bytes, bool of_heap = false) : heap_(of_heap ? bytes : 0) {
    if (!of_heap) memory_ = job().allocate(kind, bytes);
    whole_ = of_heap ? Buffer(heap_.data(), bytes, MemoryKind::host) : Buffer(memory_);
    fill(whole_, std::vector<std::byte>(bytes));
    segment_ = expose(job(), whole_);
    there_ = RemoteSegment(job(), Rank{0}, ring_.exchange(segment_.ticket())[0]);
  }
  ~Common() {
    there_.close();
    ring_.barrier();  // nobody uses the memory any more
  }

  [[nodiscard]] RemoteSegment& there() { return there_; }
  void barrier() { ring_.barrier(); }
  /// Of rank 0's memory, once all have come so far.
  [[nodiscard]] std::vector<std::uint64_t> words() {
    ring_.barrier();
    const auto image = image_of(whole_);
    std::vector<std::uint64_t> words(image.size() / kWord);
    std::memcpy(words.data(), image.data(), words.size() * kWord);
    return words;
  }
  /// Whether the way serves this rank.
  [[nodiscard]] bool serves(Path path) {
    const Operation probe = there_.atomic(0, Atomic::of<std::uint64_t>(AtomicOp::bit_or, 0), path);
    EXPECT_EQ(job().worker().wait_until([&] { return probe.done(); }, std::chrono::seconds(60)), Status::ok);
    const Status status = probe.result().status;
    EXPECT_TRUE(status == Status::ok || status == Status::not_supported) << status_name(status);
    return status == Status::ok;
  }

 private:
  Ring ring_;
  std::vector<std::byte> heap_;
  Memory memory_;
  Buffer whole_;
  Segment segment_;
  RemoteSegment there_;
};

bool is_rank_0() { return job().rank().value == 0; }

/// Each counts `times` times in the first word, a window at a time, and marks the word behind it that has the number it
/// was told.
void hammer(Common& common, Path path, std::size_t times) {
  constexpr std::size_t kWindow = 32;
  const std::size_t total = times * static_cast<std::size_t>(job().size());
  std::vector<std::uint64_t> told(times, ~std::uint64_t{0});
  for (std::size_t begun = 0; begun < times; begun += kWindow) {
    Counter counter;
    std::deque<Op> ops(std::min(kWindow, times - begun));
    const auto all = [&](auto&& post) {
      for (std::size_t i = 0; i < ops.size(); ++i) {
        ops[i].delivered = counter.sink();
        counter.track(post(begun + i, ops[i]), ops[i]);
      }
      ASSERT_EQ(job().worker().wait_until([&] { return counter.pending() == 0; }, std::chrono::seconds(60)),
                Status::ok);
      ASSERT_TRUE(counter.result().ok()) << status_name(counter.result().status);
    };
    all([&](std::size_t i, Op& op) {
      return common.there().post_atomic(0, Atomic::of<std::uint64_t>(AtomicOp::add, 1), op, &told[i], path);
    });
    if (testing::Test::HasFatalFailure()) return;
    all([&](std::size_t i, Op& op) {
      if (told[i] >= total) return Status::internal;
      return common.there().post_atomic((1 + told[i]) * kWord, Atomic::of<std::uint64_t>(AtomicOp::add, 1), op, nullptr,
                                        path);
    });
    if (testing::Test::HasFatalFailure()) return;
  }
}

void expect_counted(const std::vector<std::uint64_t>& words, std::size_t total) {
  EXPECT_EQ(words[0], total);
  for (std::size_t i = 0; i < total; ++i) ASSERT_EQ(words[1 + i], 1u) << "who was told " << i;
}

struct Ground {
  MemoryKind kind;
  bool of_heap;
};
std::vector<Ground> grounds() {
  std::vector<Ground> all = {{MemoryKind::host, true}};
  const bool over_network = job().worker().engine().options().path == Path::ucx;  // which has none on device memory
  for (const MemoryKind kind : kinds()) {
    if (host_accessible(kind) || !over_network) all.push_back({kind, false});
  }
  return all;
}

TEST(AtomicsRanks, counts_of_all_ranks_are_each_told_once) {
  const std::size_t times = test::effort<std::size_t>(500, 100);
  const std::size_t total = times * static_cast<std::size_t>(job().size());
  for (const Ground& ground : grounds()) {
    for (const Path path : {Path::automatic, Path::shm, Path::ucx}) {
      SCOPED_TRACE(std::string(memory_kind_name(ground.kind)) + (ground.of_heap ? " of the heap" : "") + " by " +
                   std::string(path_name(path)));
      Common common(ground.kind, std::max<std::size_t>((2 + total) * kWord, 65536), ground.of_heap);
      const bool serves = common.serves(path);  // of its own heap rank 0 has the mapped memory, and nobody else
      EXPECT_TRUE(path != Path::automatic || serves);
      if (serves) {
        wait_for(common.there().atomic((1 + total) * kWord, Atomic::of<std::uint64_t>(AtomicOp::add, 1)));
        hammer(common, path, times);
      }
      if (testing::Test::HasFatalFailure()) return;
      const auto words = common.words();
      if (is_rank_0()) expect_counted(words, times * words[1 + total]);
    }
  }
}

/// Through mapped memory, over the network, and with the owner's own instructions: all are its CPU's atomics.
TEST(AtomicsRanks, mapped_memory_the_network_and_threads_of_the_owner_agree) {
  const std::size_t times = test::effort<std::size_t>(2000, 200);
  const Memory memory = job().allocate(MemoryKind::host, 65536);
  fill(memory, std::vector<std::byte>(65536));
  Ring ring;
  const Segment segment = expose(job(), memory);
  RemoteSegment there(job(), Rank{0}, ring.exchange(segment.ticket())[0]);
  std::jthread thread;
  if (is_rank_0()) {
    thread = std::jthread([&] {
      const std::atomic_ref<std::uint64_t> word(memory.as<std::uint64_t>()[0]);
      for (std::size_t i = 0; i < times; ++i) word.fetch_add(1);
    });
  }
  for (std::size_t i = 0; i < times; ++i) {
    const bool over_network = (static_cast<std::size_t>(job().rank().value) + i) % 2 == 1;
    const Operation one =
        there.atomic(0, Atomic::of<std::uint64_t>(AtomicOp::add, 1), over_network ? Path::ucx : Path::shm);
    wait_for(one);
    if (testing::Test::HasFatalFailure()) return;
  }
  if (thread.joinable()) thread.join();
  ring.barrier();
  if (is_rank_0()) {
    EXPECT_EQ(memory.as<std::uint64_t>()[0], times * static_cast<std::size_t>(job().size() + 1));
  }
  there.close();
  ring.barrier();
}

/// Rank 0 looks at what rank 1 (or itself, if it is alone) did to a word for each case.
TEST(AtomicsRanks, every_operation_does_what_the_model_says) {
  const auto cases = test::atomic_cases();
  const int user = job().size() - 1;
  for (const Ground& ground : grounds()) {
    SCOPED_TRACE(std::string(memory_kind_name(ground.kind)) + (ground.of_heap ? " of the heap" : ""));
    const std::size_t bytes = std::max<std::size_t>(cases.size() * kWord, 65536);
    Common common(ground.kind, bytes, ground.of_heap);
    if (job().rank().value == user) {
      Counter counter;
      std::deque<Op> ops(2 * cases.size());
      std::vector<std::uint64_t> told(cases.size(), 0);
      const auto all = [&](auto&& post) {
        for (std::size_t i = 0; i < cases.size(); ++i) counter.track(post(i), ops[i]);
        ASSERT_EQ(job().worker().wait_until([&] { return counter.pending() == 0; }, std::chrono::seconds(60)),
                  Status::ok);
        ASSERT_TRUE(counter.result().ok()) << status_name(counter.result().status);
      };
      all([&](std::size_t i) {
        ops[i].delivered = counter.sink();
        const Atomic put{AtomicOp::store, cases[i].what.type, cases[i].before, 0};
        return common.there().post_atomic(i * kWord, put, ops[i]);
      });
      all([&](std::size_t i) {
        ops[i].delivered = counter.sink();
        const bool tells = cases[i].what.operation != AtomicOp::store;
        return common.there().post_atomic(i * kWord, cases[i].what, ops[i], tells ? &told[i] : nullptr);
      });
      for (std::size_t i = 0; i < cases.size(); ++i) ASSERT_EQ(told[i], test::told_by(cases[i])) << cases[i].name;
    }
    const auto words = common.words();
    for (std::size_t i = 0; is_rank_0() && i < cases.size(); ++i) ASSERT_EQ(words[i], cases[i].after) << cases[i].name;
  }
}

/// A lock of tickets: who has drawn a number waits until it is served. Under the lock a pair of words is read and
/// written by a get and a put, which nothing else protects.
TEST(AtomicsRanks, a_lock_of_atomics_protects_puts_and_gets) {
  const std::uint64_t rounds = test::effort<std::uint64_t>(100, 20);
  constexpr std::uint64_t kDrawn = 0, kServed = 8, kPair = 64;
  for (const Ground& ground : grounds()) {
    SCOPED_TRACE(std::string(memory_kind_name(ground.kind)) + (ground.of_heap ? " of the heap" : ""));
    Common common(ground.kind, 65536, ground.of_heap);
    const Memory local = job().allocate(ground.kind, 2 * kWord);
    RemoteSegment& there = common.there();
    const auto fetch = [&](std::uint64_t offset, AtomicOp operation, std::uint64_t operand) {
      const FetchOperation<std::uint64_t> one = there.fetch<std::uint64_t>(offset, operation, operand);
      wait_for(one);
      return one.fetched().before;
    };
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t ticket = fetch(kDrawn, AtomicOp::add, 1);
      while (fetch(kServed, AtomicOp::load, 0) != ticket) {
        if (testing::Test::HasFatalFailure()) return;
        static_cast<void>(job().worker().progress());
        std::this_thread::yield();
      }
      wait_for(there.get(kPair, local));
      std::uint64_t pair[2] = {};
      const auto image = image_of(local);
      std::memcpy(pair, image.data(), sizeof(pair));
      ASSERT_EQ(pair[0], ticket) << "somebody else was inside";
      ASSERT_EQ(pair[1], 3 * ticket);
      pair[0] += 1;
      pair[1] += 3;
      const auto* const bytes = reinterpret_cast<const std::byte*>(pair);
      fill(local, std::vector<std::byte>(bytes, bytes + sizeof(pair)));
      wait_for(there.put(kPair, local));
      EXPECT_EQ(fetch(kServed, AtomicOp::add, 1), ticket);
    }
    const auto words = common.words();
    if (is_rank_0()) {
      EXPECT_EQ(words[kPair / kWord], rounds * static_cast<std::uint64_t>(job().size()));
    }
  }
}

}  // namespace
}  // namespace brant
