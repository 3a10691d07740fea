#pragma once

#include "brant/halo/cell_copy.cuh"

/// How kernels share copies out to their threads: one text for the GPU and the emulated device.
namespace brant::halo {

inline constexpr unsigned kWarpThreads = 32;
/// Of a block of a kernel that stays.
inline constexpr unsigned kStayThreads = 4 * kChunkThreads;

/// Threads of a block that copy one chunk, beside others. Few of them have more chunks under way, many have one sooner.
template <typename Machine>
class Squad {
 public:
  BRANT_DEVICE_CODE Squad(Machine& machine, unsigned threads)
      : machine_(machine), threads_(machine.threads() < threads ? machine.threads() : threads) {}
  [[nodiscard]] BRANT_DEVICE_CODE unsigned thread() const { return machine_.thread() % threads_; }
  [[nodiscard]] BRANT_DEVICE_CODE unsigned threads() const { return threads_; }
  [[nodiscard]] BRANT_DEVICE_CODE unsigned number() const { return machine_.thread() / threads_; }
  [[nodiscard]] BRANT_DEVICE_CODE unsigned squads() const { return machine_.threads() / threads_; }
  template <typename T>
  BRANT_DEVICE_CODE T* reach(T* pointer) const {
    return machine_.reach(pointer);
  }

 private:
  Machine& machine_;
  const unsigned threads_;
};

/// The share of the block of chunks `first` to `last`. Chunks are dealt out by their numbers: what is copied one after
/// another keeps all blocks busy, however short each of it is, and a chunk is always copied by the same threads.
template <typename Machine>
BRANT_DEVICE_CODE void copy_by_squads(Machine& machine, const CopyTable& table, Word first, Word last, Share share) {
  const bool few = last - first <= Word{share.parts} * (machine.threads() / kChunkThreads);
  Squad<Machine> squad(machine, few ? kChunkThreads : kWarpThreads);
  const unsigned squads = share.parts * squad.squads();
  const unsigned own = share.part * squad.squads() + squad.number();
  const unsigned before = static_cast<unsigned>(first) % squads;
  for (Word chunk = first + (own + squads - before) % squads; chunk < last; chunk += squads) {
    copy_chunk(squad, table, chunk);
  }
}

/// The share of the block of a range.
template <typename Machine>
BRANT_DEVICE_CODE void copy_range(Machine& machine, const CopyTable& table, const CopyRange& range, Share share) {
  if (range.listed != 0) {
    copy_listed(machine, table, range.first, range.last, share);
  } else {
    copy_by_squads(machine, table, range.first, range.last, share);
  }
}

}  // namespace brant::halo
