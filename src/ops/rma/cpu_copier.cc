#include "ops/rma/cpu_copier.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace brant {
namespace {

/// What this process writes next, to tell of the bytes, is not seen before them. Free on x86.
void publish() noexcept {
#ifndef __SANITIZE_THREAD__  // which does not know fences
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

/// True: that was all.
bool copy_some(RmaTransfer::CpuStep& step) noexcept {
  const std::size_t bytes = std::min(step.left, CpuCopier::kTurnBytes);
  CpuCopier::copy(step.to, step.from, bytes);
  step.to += bytes;
  step.from += bytes;
  step.left -= bytes;
  return step.left == 0;
}

}  // namespace

void CpuCopier::copy(void* to, const void* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
  publish();
}

Status CpuCopier::start(RmaTransfer& transfer) noexcept {
  if (copy_some(transfer.cpu)) return Status::ok;
  copying_.push_back(transfer);
  engine_.attach(static_cast<Poller&>(*this));
  return Status::in_progress;
}

bool CpuCopier::withdraw(RmaTransfer& transfer) noexcept {
  if (!copying_.linked(transfer)) return false;
  copying_.remove(transfer);
  if (copying_.empty()) engine_.detach(static_cast<Poller&>(*this));
  return true;
}

unsigned CpuCopier::poll() noexcept {
  RmaTransfer* transfer = copying_.pop_front();
  if (transfer == nullptr) return 0;
  if (!copy_some(transfer->cpu)) {
    copying_.push_back(*transfer);
    return 1;
  }
  if (copying_.empty()) engine_.detach(static_cast<Poller&>(*this));
  done_(*transfer, Status::ok);
  return 1;
}

}  // namespace brant
