#pragma once

#include "brant/base/simt.h"

#ifdef __CUDACC__
#define BRANT_UNROLLED _Pragma("unroll")
#else
#include <cstring>
#define BRANT_UNROLLED
#endif

/// How cells are copied, by kernels of the GPU and of the emulated device: one text for both.
namespace brant::halo {

using simt::Word;

/// A box of cells, at either end rows of as many bytes, which are x; along y, z and the variables the rows lie so many
/// bytes apart. A packed end has strides as well.
struct CopyEnd {
  Word base = 0;   ///< Number of an address in the table of bases.
  Word first = 0;  ///< Bytes from there.
  Word row = 0;
  Word plane = 0;
  Word variable = 0;
};
struct CopyBox {
  CopyEnd from;
  CopyEnd to;
  Word row_bytes = 0;
  Word rows = 0;
  Word planes = 0;
  Word bytes = 0;  ///< Of all variables.
  Word unit = 1;   ///< The largest of 16, 8, 4, 2 and 1 that divides everything above.
};

/// What one block of threads copies at a time: bytes of one box, as if that were packed.
struct CopyChunk {
  Word box = 0;
  Word begin = 0;
};
inline constexpr unsigned kChunkThreads = 128;
inline constexpr Word kChunkBytes = 4096;

/// A unit of cells, written out: addresses of the device.
struct alignas(16) CopyUnit {
  Word from = 0;
  Word to = 0;
};

/// In device memory; the bases are addresses of the device.
struct CopyTable {
  const CopyBox* boxes = nullptr;
  const CopyChunk* chunks = nullptr;
  const Word* bases = nullptr;
  Word unit_max = 16;  ///< To which all bases are aligned.
  /// All units of all chunks in their order, of so many bytes each. Null: they are too many. For copies that are done
  /// often: a thread finds its cells by one look and not by one at the chunk, its box and the bases behind each other.
  const CopyUnit* units = nullptr;
  Word unit_bytes = 0;
};

/// Numbers from `first` to before `last`: of chunks of a table, or of units of its list.
struct CopyRange {
  Word first = 0;
  Word last = 0;
  Word listed = 0;

  [[nodiscard]] BRANT_DEVICE_CODE bool empty() const { return first == last; }
};

/// One of so many parts of numbers, about equal ones.
struct Share {
  unsigned part = 0;
  unsigned parts = 1;
};

/// A part of a range for a block that copies alone.
BRANT_DEVICE_CODE CopyRange part_of(const CopyRange& range, Share share) {
  const unsigned each = (static_cast<unsigned>(range.last - range.first) + share.parts - 1) / share.parts;
  const Word begin = range.first + Word{each} * share.part;
  CopyRange part = range;
  part.first = begin < range.last ? begin : range.last;
  part.last = part.first + each < range.last ? part.first + each : range.last;
  return part;
}

struct alignas(16) Unit16 {
  Word first;
  Word second;
};

template <typename Unit>
BRANT_DEVICE_CODE Unit load_unit(const unsigned char* from) {
#ifdef __CUDACC__
  return *reinterpret_cast<const Unit*>(from);
#else
  Unit unit;
  std::memcpy(&unit, from, sizeof unit);
  return unit;
#endif
}
template <typename Unit>
BRANT_DEVICE_CODE void store_unit(unsigned char* to, Unit unit) {
#ifdef __CUDACC__
  *reinterpret_cast<Unit*>(to) = unit;
#else
  std::memcpy(to, &unit, sizeof unit);
#endif
}

/// Units `begin` to `end` of a box, by the threads of a block: those next to each other take neighbours along x. Loads
/// of several units are under way at once.
template <typename Unit, typename Index, typename Machine>
BRANT_DEVICE_CODE void copy_units(Machine& machine, const CopyBox& box, const unsigned char* from, unsigned char* to,
                                  Word begin, Word end) {
  constexpr unsigned kBatch = 4;
  const auto row_units = static_cast<Index>(box.row_bytes / sizeof(Unit));
  const auto rows = static_cast<Index>(box.rows);
  const auto planes = static_cast<Index>(box.planes);
  for (Word unit = begin + machine.thread(); unit < end; unit += kBatch * machine.threads()) {
    Unit values[kBatch];
    Word places[kBatch];
    BRANT_UNROLLED
    for (unsigned i = 0; i < kBatch; ++i) {
      const Word mine = unit + i * machine.threads();
      if (mine >= end) continue;
      auto rest = static_cast<Index>(mine);
      const Index x = rest % row_units;
      rest /= row_units;
      const Index y = rest % rows;
      rest /= rows;
      const Index z = rest % planes;
      const Index variable = rest / planes;
      values[i] = load_unit<Unit>(from + x * Word{sizeof(Unit)} + y * box.from.row + z * box.from.plane +
                                  variable * box.from.variable);
      places[i] = x * Word{sizeof(Unit)} + y * box.to.row + z * box.to.plane + variable * box.to.variable;
    }
    BRANT_UNROLLED
    for (unsigned i = 0; i < kBatch; ++i) {
      if (unit + i * machine.threads() < end) store_unit(to + places[i], values[i]);
    }
  }
}

template <typename Unit, typename Machine>
BRANT_DEVICE_CODE void copy_bytes_of(Machine& machine, const CopyBox& box, const unsigned char* from, unsigned char* to,
                                     Word begin, Word end) {
  constexpr Word kSize = sizeof(Unit);
  if (box.bytes >> 32 == 0) {
    copy_units<Unit, unsigned>(machine, box, from, to, begin / kSize, end / kSize);
  } else {
    copy_units<Unit, Word>(machine, box, from, to, begin / kSize, end / kSize);
  }
}

/// One chunk, by all threads of a block.
template <typename Machine>
BRANT_DEVICE_CODE void copy_chunk(Machine& machine, const CopyTable& table, Word number) {
  const CopyChunk chunk = machine.reach(table.chunks)[number];
  const CopyBox& box = machine.reach(table.boxes)[chunk.box];
  const Word* const bases = machine.reach(table.bases);
  // Null: freed by a program that gave up, on the emulated device; a GPU would have waited with that.
  const auto* const from_base = machine.reach(reinterpret_cast<const unsigned char*>(bases[box.from.base]));
  auto* const to_base = machine.reach(reinterpret_cast<unsigned char*>(bases[box.to.base]));
  if (from_base == nullptr || to_base == nullptr) return;
  const unsigned char* const from = from_base + box.from.first;
  unsigned char* const to = to_base + box.to.first;
  const Word begin = chunk.begin;
  const Word end = begin + kChunkBytes < box.bytes ? begin + kChunkBytes : box.bytes;
  switch (box.unit < table.unit_max ? box.unit : table.unit_max) {
    case 16: return copy_bytes_of<Unit16>(machine, box, from, to, begin, end);
    case 8: return copy_bytes_of<Word>(machine, box, from, to, begin, end);
    case 4: return copy_bytes_of<unsigned>(machine, box, from, to, begin, end);
    case 2: return copy_bytes_of<unsigned short>(machine, box, from, to, begin, end);
    default: return copy_bytes_of<unsigned char>(machine, box, from, to, begin, end);
  }
}

/// Units of the list from `first` to before `last`, by the threads of some blocks. Loads of several are under way at
/// once.
template <typename Unit, typename Machine>
BRANT_DEVICE_CODE void copy_listed_of(Machine& machine, const CopyUnit* units, Word first, Word last, Share share) {
  constexpr unsigned kBatch = 4;
  const unsigned stride = share.parts * machine.threads();
  for (Word unit = first + share.part * machine.threads() + machine.thread(); unit < last; unit += kBatch * stride) {
    CopyUnit places[kBatch];
    Unit values[kBatch];
    BRANT_UNROLLED
    for (unsigned i = 0; i < kBatch; ++i) {
      if (unit + i * stride < last) places[i] = units[unit + i * stride];
    }
    BRANT_UNROLLED
    for (unsigned i = 0; i < kBatch; ++i) {
      if (unit + i * stride >= last) continue;
      const auto* const from = machine.reach(reinterpret_cast<const unsigned char*>(places[i].from));
      // Null: freed by a program that gave up, on the emulated device.
      if (from != nullptr) {
        values[i] = load_unit<Unit>(from);
      } else {
        places[i].to = 0;
      }
    }
    BRANT_UNROLLED
    for (unsigned i = 0; i < kBatch; ++i) {
      if (unit + i * stride >= last || places[i].to == 0) continue;
      auto* const to = machine.reach(reinterpret_cast<unsigned char*>(places[i].to));
      if (to != nullptr) store_unit(to, values[i]);
    }
  }
}

template <typename Machine>
BRANT_DEVICE_CODE void copy_listed(Machine& machine, const CopyTable& table, Word first, Word last, Share share) {
  const CopyUnit* const units = machine.reach(table.units);
  switch (table.unit_bytes) {
    case 16: return copy_listed_of<Unit16>(machine, units, first, last, share);
    case 8: return copy_listed_of<Word>(machine, units, first, last, share);
    case 4: return copy_listed_of<unsigned>(machine, units, first, last, share);
    case 2: return copy_listed_of<unsigned short>(machine, units, first, last, share);
    default: return copy_listed_of<unsigned char>(machine, units, first, last, share);
  }
}

/// The share of the block of chunks `first` to `last`.
template <typename Machine>
BRANT_DEVICE_CODE void copy_chunks(Machine& machine, const CopyTable& table, Word first, Word last, Share share) {
  for (Word chunk = first + share.part; chunk < last; chunk += share.parts) copy_chunk(machine, table, chunk);
}

}  // namespace brant::halo

#undef BRANT_UNROLLED
