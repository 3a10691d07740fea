// In the steady state a message must not allocate in our code. Every operator new of this program is counted; UCX
// itself allocates with malloc, which is not.
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "conformance/wire/subject.h"

namespace {
std::atomic<std::uint64_t> g_allocations{0};

void* counted(std::size_t bytes, std::size_t align) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = align > alignof(std::max_align_t) ? std::aligned_alloc(align, (bytes + align - 1) / align * align)
                                                   : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 0); }
void* operator new[](std::size_t bytes) { return counted(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t align) {
  return counted(bytes, static_cast<std::size_t>(align));
}
void* operator new[](std::size_t bytes, std::align_val_t align) {
  return counted(bytes, static_cast<std::size_t>(align));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace brant::port::test {
namespace {

class Allocation : public testing::TestWithParam<WireSubject> {
 protected:
  void SetUp() override {
    try {
      pair = GetParam().open();
    } catch (const Error& error) {
      if (error.status() != Status::not_found) throw;
      GTEST_SKIP() << error.what();
    }
  }
  /// One message each way: the receive posted before, and after, the send.
  bool exchange(std::size_t bytes) {
    Tracked sent, received;
    received.posted = pair.right->tag_recv(1, kWholeTag, Buffer{in, bytes, MemoryKind::host}, received);
    sent.posted = pair.left->tag_send(pair.to_right, 1, ConstBuffer{out, bytes, MemoryKind::host}, sent);
    if (!pump(pair, [&] { return sent.done() && received.done(); })) return false;
    Tracked sent_back, received_back;
    sent_back.posted = pair.right->tag_send(pair.to_left, 2, ConstBuffer{out, bytes, MemoryKind::host}, sent_back);
    pair.left->progress();
    received_back.posted = pair.left->tag_recv(2, kWholeTag, Buffer{in, bytes, MemoryKind::host}, received_back);
    return pump(pair, [&] { return sent_back.done() && received_back.done(); });
  }
  std::uint64_t allocations_of(std::size_t bytes, int rounds, bool active) {
    EXPECT_GT(g_allocations.load(), 0u) << "the counting does not work";
    const std::uint64_t before = g_allocations.load();
    for (int i = 0; i < rounds; ++i) {
      if (!(active ? exchange_am(bytes) : exchange(bytes))) return UINT64_MAX;
    }
    return g_allocations.load() - before;
  }
  bool exchange_am(std::size_t bytes) {
    const int before = handled;
    Tracked sent;
    sent.posted =
        pair.left->am_send(pair.to_right, 1, std::span(out).first(24), ConstBuffer{out, bytes, MemoryKind::host}, sent);
    return pump(pair, [&] { return sent.done() && handled > before; });
  }

  int handled = 0;
  WirePair pair;
  std::byte out[8192]{}, in[8192]{};
};

TEST_P(Allocation, ten_thousand_small_exchanges_allocate_nothing) {
  ASSERT_NE(allocations_of(8, 500, false), UINT64_MAX);  // until the pools are filled
  EXPECT_EQ(allocations_of(8, 10000, false), 0u);
}

TEST_P(Allocation, larger_messages_allocate_nothing) {
  ASSERT_NE(allocations_of(8192, 200, false), UINT64_MAX);
  EXPECT_EQ(allocations_of(8192, 1000, false), 0u);
}

TEST_P(Allocation, active_messages_allocate_nothing) {
  pair.right->set_am_handler(1, [](void* context, AmMessage&) noexcept { ++*static_cast<int*>(context); }, &handled);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{2000}, std::size_t{8192}}) {
    ASSERT_NE(allocations_of(bytes, 200, true), UINT64_MAX);
    EXPECT_EQ(allocations_of(bytes, 2000, true), 0u) << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Wire, Allocation, testing::ValuesIn(subjects()),
                         [](const auto& subject) { return subject.param.name; });

}  // namespace
}  // namespace brant::port::test
