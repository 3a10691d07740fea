#include "models/mpi/buffered_sends.h"

#include <algorithm>

#include "models/mpi/request.h"

namespace brant::mpi {

namespace {

/// MPI_BSEND_OVERHEAD of MPICH's ABI, whose programs have it for each message; those of the standard's have more.
constexpr std::size_t kOverhead = 96;
static_assert(kOverhead <= MPI_BSEND_OVERHEAD);

std::size_t cost(std::size_t bytes) noexcept { return bytes + kOverhead; }

}  // namespace

void BufferedSends::attach(void* buffer, std::size_t size) noexcept {
  buffer_ = buffer;
  size_ = size;
  attached_ = true;
}

void BufferedSends::detach() noexcept {
  buffer_ = nullptr;
  size_ = 0;
  attached_ = false;
}

bool BufferedSends::takes(std::size_t bytes) const noexcept {
  const bool automatic = attached_ && buffer_ == MPI_BUFFER_AUTOMATIC;
  return automatic || used_ + cost(bytes) <= size_;
}

std::uint64_t BufferedSends::add(std::size_t bytes) noexcept {
  used_ += cost(bytes);
  ++count_;
  return next_++;
}

void BufferedSends::remove(std::size_t bytes, std::uint64_t number) noexcept {
  used_ -= cost(bytes);
  --count_;
  for (Flush& flush : flushes_) {
    if (number < flush.below) --flush.left;
  }
  // One at a time: the program may be told of an end, and free what it asked for.
  for (;;) {
    const auto ended = std::ranges::find(flushes_, std::size_t{0}, &Flush::left);
    if (ended == flushes_.end()) return;
    Request& request = *ended->request;
    flushes_.erase(ended);
    request.end(MPI_SUCCESS);
  }
}

void BufferedSends::end_when_flushed(Request& request) {
  if (empty()) return request.end(MPI_SUCCESS);
  flushes_.push_back({&request, next_, count_});
}

}  // namespace brant::mpi
