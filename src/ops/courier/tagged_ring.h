#pragma once

#include <cstdint>

#include "port/simt.h"

namespace brant::courier {

/// A ring of entries that one side writes and one other side reads while neither may wait, over a bus that keeps no
/// order and promises no more than whole 64-bit words.
///
/// Every word carries the *lap* of its entry in its top 8 bits: an entry is there when all its words say so. So it
/// matters neither in which order the words are written, nor in which they are read, nor whether a reader's wide load
/// is one access: a half-written entry has a word of an earlier lap and is taken for absent. No second word (a head, a
/// flag) is read to learn that. The writer must know that an entry was taken before it writes the next lap over it. It
/// may leave a slot out for some laps, but not for kLapsTold of them: then the reader would take for new what is old.
///
/// Entries are numbered from kSlots on (lap 1): zeroed memory is an empty ring.
template <unsigned kWordsPerEntry, unsigned kSlotCount>
struct TaggedRing {
  static constexpr unsigned kWords = kWordsPerEntry;
  static constexpr unsigned kSlots = kSlotCount;
  static constexpr unsigned kPairs = kWords / 2;  ///< What a lane reads: 16 bytes.
  static_assert(kWords % 2 == 0 && (kSlots & (kSlots - 1)) == 0);

  /// The words of an entry without tags.
  struct Entry {
    std::uint64_t words[kWords];
  };

  static constexpr std::uint64_t kFirst = kSlots;

  alignas(128) std::uint64_t words[kSlots][kWords];
};

inline constexpr unsigned kTagShift = 56;
inline constexpr std::uint64_t kLapsTold = std::uint64_t{1} << (64 - kTagShift);  ///< Laps that tags tell apart.
inline constexpr std::uint64_t kPayloadMask = (std::uint64_t{1} << kTagShift) - 1;

template <typename Ring>
BRANT_DEVICE_CODE std::uint64_t tag_of(std::uint64_t number) {
  return (number / Ring::kSlots) << kTagShift;  // the upper bits of the lap fall off
}

/// Writes entry `number`. The slot must be free; what the entry speaks of must have been fenced before.
template <typename Machine, typename Ring>
BRANT_DEVICE_CODE void put_entry(Machine& machine, Ring& ring, std::uint64_t number,
                                 const typename Ring::Entry& entry) {
  std::uint64_t* slot = ring.words[number % Ring::kSlots];
  const std::uint64_t tag = tag_of<Ring>(number);
  for (unsigned i = 0; i < Ring::kWords; ++i) machine.store_relaxed(&slot[i], (entry.words[i] & kPayloadMask) | tag);
}

/// Looks once, with one coalesced load, how many of the entries `next`, `next + 1`, ... (at most `most`) are there, and
/// puts them on the desk. All lanes of the warp call it; `load` is how one reads two words.
template <typename Machine, typename Ring, typename LoadPair>
BRANT_DEVICE_CODE unsigned take_entries(Machine& machine, const Ring& ring, std::uint64_t next, unsigned most,
                                        typename Ring::Entry* desk, LoadPair&& load) {
  const unsigned pairs = machine.leading(most * Ring::kPairs, [&](unsigned lane) {
    const unsigned entry = lane / Ring::kPairs;
    const unsigned word = lane % Ring::kPairs * 2;
    const std::uint64_t number = next + entry;
    const auto pair = load(&ring.words[number % Ring::kSlots][word]);
    desk[entry].words[word] = pair.first & kPayloadMask;
    desk[entry].words[word + 1] = pair.second & kPayloadMask;
    const std::uint64_t tag = tag_of<Ring>(number);
    return (pair.first & ~kPayloadMask) == tag && (pair.second & ~kPayloadMask) == tag;
  });
  machine.sync_warp();
  return pairs / Ring::kPairs;
}
template <typename Machine, typename Ring>
BRANT_DEVICE_CODE unsigned take_entries(Machine& machine, const Ring& ring, std::uint64_t next, unsigned most,
                                        typename Ring::Entry* desk) {
  return take_entries(machine, ring, next, most, desk,
                      [&](const std::uint64_t* pair) { return machine.load_pair_acquire(pair); });
}

}  // namespace brant::courier
