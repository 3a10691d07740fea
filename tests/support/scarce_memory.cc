#include "support/scarce_memory.h"

#include <cstdlib>
#include <new>

namespace brant::test {
namespace {

struct Scarcity {
  bool counts = false;
  bool goes_on = false;
  bool failed = false;
  unsigned left = 0;  ///< Allocations that succeed.
};

thread_local constinit Scarcity t_scarcity;

}  // namespace

ScarceMemory::ScarceMemory(unsigned nth, Fails fails) noexcept {
  t_scarcity = {true, fails == Fails::from_then_on, false, nth - 1};
}

void ScarceMemory::end() noexcept { t_scarcity.counts = false; }

bool ScarceMemory::failed() const noexcept { return t_scarcity.failed; }

bool ScarceMemory::refuses() noexcept {
  Scarcity& scarcity = t_scarcity;
  if (!scarcity.counts) return false;
  if (scarcity.left != 0) {
    --scarcity.left;
    return false;
  }
  scarcity.failed = true;
  scarcity.counts = scarcity.goes_on;
  return true;
}

}  // namespace brant::test

namespace {

void* allocate_or_null(std::size_t bytes) noexcept {
  return brant::test::ScarceMemory::refuses() ? nullptr : std::malloc(bytes);
}

void* allocate_or_null(std::size_t bytes, std::align_val_t align) noexcept {
  const auto alignment = static_cast<std::size_t>(align);
  if (brant::test::ScarceMemory::refuses()) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Not inlined: the compiler would see one of a pair, and take it for a mistake.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return or_throw(allocate_or_null(bytes)); }
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return or_throw(allocate_or_null(bytes)); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t align) {
  return or_throw(allocate_or_null(bytes, align));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t align) {
  return or_throw(allocate_or_null(bytes, align));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, align);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, align);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
