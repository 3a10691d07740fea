#include "base/process_copy.h"

#include <pthread.h>

namespace brant {

unsigned ProcessCopy::forks_so_far = 0;

ProcessCopy::ProcessCopy() noexcept : forks_(forks_so_far) {
  // Without memory for it, a child is not known as one.
  [[maybe_unused]] static const int registered = ::pthread_atfork(nullptr, nullptr, [] { ++forks_so_far; });
}

}  // namespace brant
