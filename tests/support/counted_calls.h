#pragma once

#include <cstdint>

/// Counts what the calling thread asks of the C library, whoever asks: our code, the network library, the driver. For
/// programs that link counted_calls.cc, which puts itself in front of these functions; not with sanitizers: they own
/// malloc.
namespace brant::test {

struct CallCounts {
  std::uint64_t allocations = 0;  ///< malloc, calloc, realloc, aligned_alloc
  std::uint64_t locks = 0;        ///< pthread_mutex_lock, pthread_rwlock_rdlock and _wrlock
};

/// From zero. Other threads do not count.
void start_counting();
CallCounts stop_counting();

}  // namespace brant::test
