#include "support/counted_calls.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cstddef>

namespace {

thread_local bool t_counting = false;
thread_local brant::test::CallCounts t_counts;

void count_allocation() noexcept {
  if (t_counting) ++t_counts.allocations;
}
void count_lock() noexcept {
  if (t_counting) ++t_counts.locks;
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

[[gnu::visibility("default")]] void* malloc(std::size_t bytes) {
  count_allocation();
  return __libc_malloc(bytes);
}
[[gnu::visibility("default")]] void* calloc(std::size_t count, std::size_t bytes) {
  count_allocation();
  return __libc_calloc(count, bytes);
}
[[gnu::visibility("default")]] void* realloc(void* old, std::size_t bytes) {
  count_allocation();
  return __libc_realloc(old, bytes);
}
[[gnu::visibility("default")]] void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count_allocation();
  return __libc_memalign(alignment, bytes);
}

[[gnu::visibility("default")]] int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const auto real = reinterpret_cast<Lock>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  count_lock();
  return real(mutex);
}
[[gnu::visibility("default")]] int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  using Lock = int (*)(pthread_rwlock_t*);
  static const auto real = reinterpret_cast<Lock>(::dlsym(RTLD_NEXT, "pthread_rwlock_rdlock"));
  count_lock();
  return real(lock);
}
[[gnu::visibility("default")]] int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  using Lock = int (*)(pthread_rwlock_t*);
  static const auto real = reinterpret_cast<Lock>(::dlsym(RTLD_NEXT, "pthread_rwlock_wrlock"));
  count_lock();
  return real(lock);
}

}  // extern "C"

namespace brant::test {

void start_counting() {
  t_counts = {};
  t_counting = true;
}

CallCounts stop_counting() {
  t_counting = false;
  return t_counts;
}

}  // namespace brant::test
