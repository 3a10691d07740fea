#pragma once

#include "ops/coll/device/stream_board.h"

namespace brant::coll {

/// What sync_block_any of a Machine is, for so many threads of some warps. Barrier 0 is that of the block. A block of
/// one thread has nobody to meet.
#ifdef __CUDACC__
BRANT_DEVICE_CODE bool sync_some_any(simt::GpuThread&, unsigned barrier, unsigned threads, bool said) {
  unsigned any;
  asm volatile(
      "{ .reg .pred ours, all; setp.ne.u32 ours, %1, 0; barrier.cta.red.or.pred all, %2, %3, ours; "
      "selp.u32 %0, 1, 0, all; }"
      : "=r"(any)
      : "r"(said ? 1u : 0u), "r"(barrier), "r"(threads)
      : "memory");
  return any != 0;
}
#else
inline bool sync_some_any(simt::BlockOfOne&, unsigned, unsigned, bool said) { return said; }
#endif

/// The threads of a block that do something together. A block of one thread does what all crews do.
struct Crew {
  Word rank;  ///< Of this thread; not below `count`: it belongs to another crew.
  Word count;
  [[nodiscard]] BRANT_DEVICE_CODE bool has_this() const { return rank < count; }
};

/// What the threads of one block do. Workers move bytes; the last two warps wait for heads and write them, so that no
/// worker waits for a fence.
template <typename Machine>
class StreamCrews {
 public:
  explicit BRANT_DEVICE_CODE StreamCrews(Machine& machine) : machine_(machine) {}

  BRANT_DEVICE_CODE Crew whole_block() const { return {machine_.thread(), machine_.threads()}; }
  BRANT_DEVICE_CODE Crew workers() const { return crew(0, worker_count()); }
  BRANT_DEVICE_CODE Crew first_workers() const { return crew(0, worker_count() / 2); }
  BRANT_DEVICE_CODE Crew other_workers() const { return crew(worker_count() / 2, worker_count() / 2); }
  BRANT_DEVICE_CODE Crew waiters() const { return crew(worker_count(), kWarp); }
  BRANT_DEVICE_CODE Crew tellers() const { return crew(worker_count() + kWarp, kWarp); }

  /// The workers and the warp that waits for heads, or the one that writes them. Whether any of them says so.
  static constexpr unsigned kBegins = 1, kEnds = 2;  // of the barriers of a block
  BRANT_DEVICE_CODE bool meet_workers(unsigned barrier, bool said) {
    return sync_some_any(machine_, barrier, worker_count() + kWarp, said);
  }

 private:
  static constexpr unsigned kWarp = 32;
  BRANT_DEVICE_CODE unsigned worker_count() const { return machine_.threads() - 2 * kWarp; }
  BRANT_DEVICE_CODE Crew crew(unsigned first, unsigned count) const {
    return machine_.threads() == 1 ? Crew{0, 1} : Crew{Word{machine_.thread()} - first, count};
  }

  Machine& machine_;
};

}  // namespace brant::coll
