// What an open end of a channel keeps while nothing is under way, and what is left of a closed one. This program counts
// memory by itself, since the C library's own count has in it what was freed and is kept, so it stands alone.
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "support/in_process_job.h"

namespace {
std::atomic<std::int64_t> g_allocated = 0;  // jobs have threads

void* counted(void* memory) noexcept {
  if (memory != nullptr) g_allocated += static_cast<std::int64_t>(::malloc_usable_size(memory));
  return memory;
}
}  // namespace

// Not inlined: the compiler would see one of a pair, and take it for a mistake.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* memory = counted(std::malloc(bytes));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(std::malloc(bytes));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  void* memory = counted(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory != nullptr) g_allocated -= static_cast<std::int64_t>(::malloc_usable_size(memory));
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { operator delete(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  operator delete(memory);
}

namespace brant {
namespace {

using test::InProcessJob;
using test::JobOptions;

constexpr std::uint32_t kChannels = 1000;

/// Both ends, which are in this process.
struct Pair {
  Channel left, right;
};

void send_and_receive(InProcessJob& job, Channel& from, Channel& to) {
  std::uint64_t sent = 1, landed = 0;
  Operation receive = to.recv(Buffer(&landed, sizeof(landed), MemoryKind::host));
  Operation send = from.send(ConstBuffer(&sent, sizeof(sent), MemoryKind::host));
  ASSERT_TRUE(job.outcome(receive).ok());
  ASSERT_TRUE(job.outcome(send).ok());
}

struct Bytes {
  std::int64_t open, closed;  ///< More than before.
};

/// Opens them, from this id on, sends a small message each way on each, and closes them.
Bytes open_and_close(InProcessJob& job, std::uint32_t first) {
  std::vector<Pair> pairs(kChannels);
  const std::int64_t before = g_allocated;
  for (std::uint32_t i = 0; i < kChannels; ++i) {
    pairs[i].left = Channel::open(job.rank(0), Rank{1}, ChannelId{first + i});
    pairs[i].right = Channel::open(job.rank(1), Rank{0}, ChannelId{first + i});
    send_and_receive(job, pairs[i].left, pairs[i].right);
    send_and_receive(job, pairs[i].right, pairs[i].left);
  }
  job.run(100);
  const std::int64_t open = g_allocated;
  for (Pair& pair : pairs) {
    pair.left.close();
    pair.right.close();
  }
  job.run(5000);
  return {open - before, g_allocated - before};
}

class OpenEnds : public testing::TestWithParam<bool> {};

TEST_P(OpenEnds, keep_one_kilobyte_each_at_rest_and_closed_ones_next_to_nothing) {
  JobOptions options;
  options.links = GetParam();
  InProcessJob job(options);
  static_cast<void>(open_and_close(job, 100));  // the pools of the process
  const Bytes once = open_and_close(job, 5000), again = open_and_close(job, 5000);
  EXPECT_LE(once.open / (2 * kChannels), 1024) << once.open << " bytes for " << 2 * kChannels << " ends";
  // Of each id what its numbers are goes on, as Channel says. Opened again it leaves nothing more: a few bytes an end
  // are less than any record of one.
  EXPECT_LT(once.closed / (2 * kChannels), 64) << once.closed << " bytes for " << 2 * kChannels << " ends";
  EXPECT_LT(again.closed / (2 * kChannels), 4) << again.closed << " bytes for " << 2 * kChannels << " ends";
  RecordProperty("bytes_of_an_end", static_cast<int>(once.open / (2 * kChannels)));
}

INSTANTIATE_TEST_SUITE_P(Channels, OpenEnds, testing::Bool(),
                         [](const auto& links) { return links.param ? "with_links" : "over_the_network"; });

}  // namespace
}  // namespace brant
