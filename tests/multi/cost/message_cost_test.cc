// What a message costs in steady state, counted and not timed: allocations and locks, in this process as a whole, the
// network library included. The memory is declared: asking the CUDA driver for an undeclared kind takes the driver's
// locks. The counters sit in front of the C library's functions.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"

namespace {

std::atomic<std::uint64_t> g_allocations{0};
std::atomic<std::uint64_t> g_locks{0};
thread_local bool t_counting = false;  // the network library's own threads do not count

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);

__attribute__((visibility("default"))) void* malloc(std::size_t bytes) {
  if (t_counting) g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void* calloc(std::size_t count, std::size_t bytes) {
  if (t_counting) g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
__attribute__((visibility("default"))) void* realloc(void* old, std::size_t bytes) {
  if (t_counting) g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, bytes);
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const auto real = reinterpret_cast<Lock>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (t_counting) g_locks.fetch_add(1, std::memory_order_relaxed);
  return real(mutex);
}

}  // extern "C"

namespace brant {
namespace {

struct Cost {
  std::uint64_t allocations;
  std::uint64_t locks;
};

template <typename Body>
Cost cost_of(Body&& body) {
  g_allocations = 0;
  g_locks = 0;
  t_counting = true;
  body();
  t_counting = false;
  return {g_allocations.load(), g_locks.load()};
}

void ping_pong(Runtime& runtime, Channel& channel, std::size_t bytes, int rounds) {
  std::vector<std::byte> sent(bytes), landed(bytes);
  const bool first = runtime.rank().value == 0;
  for (int round = 0; round < rounds; ++round) {
    Operation receive = channel.recv(Buffer(landed.data(), bytes, MemoryKind::host));
    const auto wait_for = [&](Operation& operation) {
      ASSERT_EQ(runtime.worker().wait_until([&] { return operation.done(); }, std::chrono::seconds(20)), Status::ok);
    };
    if (!first) wait_for(receive);
    Operation send = channel.send(ConstBuffer(sent.data(), bytes, MemoryKind::host));
    wait_for(send);
    if (first) wait_for(receive);
  }
}

TEST(MessageCost, the_counters_count) {
  const Cost cost = cost_of([] {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    std::vector<int>* made = new std::vector<int>(100);
    delete made;
  });
  EXPECT_GE(cost.allocations, 1u);
  EXPECT_EQ(cost.locks, 1u);
}

TEST(MessageCost, no_allocation_and_no_lock_in_steady_state) {
  Runtime runtime;
  ASSERT_EQ(runtime.size(), 2);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1024}}) {
    Channel channel =
        Channel::open(runtime, Rank{1 - runtime.rank().value}, ChannelId{static_cast<std::uint32_t>(bytes)});
    ping_pong(runtime, channel, bytes, 2000);
    constexpr int kRounds = 10'000;
    const Cost cost = cost_of([&] { ping_pong(runtime, channel, bytes, kRounds); });
    // The two buffers of ping_pong itself are the only allocations.
    EXPECT_LE(cost.allocations, 2u) << bytes << " bytes";
    EXPECT_EQ(cost.locks, 0u) << bytes << " bytes";
    const ChannelCounts counts = channel.counts();
    EXPECT_EQ(counts.sent, 12'000u);
    EXPECT_EQ(counts.received, 12'000u);
  }
}

}  // namespace
}  // namespace brant
