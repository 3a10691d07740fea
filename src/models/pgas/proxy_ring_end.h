#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>

#include "brant/pgas/proxy_ring.cuh"

namespace brant {

/// The CPU's end of a ring of orders; for one thread.
class ProxyRingEnd {
 public:
  /// `part` holds zeros, and outlives this.
  explicit ProxyRingEnd(pgas::ProxyHostPart& part) noexcept : part_(part) {}
  ProxyRingEnd(const ProxyRingEnd&) = delete;
  ProxyRingEnd& operator=(const ProxyRingEnd&) = delete;

  /// The next order, in the order of tickets, with all that its thread had written before. False: none has come.
  bool take(pgas::ProxyOrder& order) noexcept {
    pgas::ProxyOrder& next = part_.orders[taken_ % pgas::kProxySlots];
    if (std::atomic_ref(next.turn).load(std::memory_order_acquire) != taken_ + 1) return false;
    order = next;
    ++taken_;
    return true;
  }
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

  /// Behind everything that this thread has done; then the slot of that turn may be used again. The payload may have
  /// up to kProxyPayloadBytes.
  void answer(std::uint64_t turn, bool failed, std::span<const std::byte> payload) noexcept {
    pgas::ProxyAnswer& answer = part_.answers[(turn - 1) % pgas::kProxySlots];
    pgas::Word words[pgas::kProxyPayloadWords] = {};
    if (!payload.empty()) std::memcpy(words, payload.data(), payload.size());
    for (unsigned i = 0; i < pgas::kProxyPayloadWords; ++i)
      std::atomic_ref(answer.payload[i]).store(words[i], std::memory_order_relaxed);
    std::atomic_ref(answer.failed).store(failed ? 1 : 0, std::memory_order_relaxed);
    std::atomic_ref(answer.turn).store(turn, std::memory_order_release);
  }

  /// Kernels that wait end, behind everything that this thread has done.
  void set_fault() noexcept { std::atomic_ref(part_.fault).store(1, std::memory_order_release); }

 private:
  pgas::ProxyHostPart& part_;
  std::uint64_t taken_ = 0;
};

}  // namespace brant
