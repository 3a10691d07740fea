#pragma once

#ifndef __CUDACC_RTC__
#include <cstddef>
#include <cstdint>
#endif

#include "brant/base/simt.h"

/// What kernels of a team's members write into each other's device memory: the board of turns (turn_board.h), once for
/// each block of a grid.
///
/// Block b of a member deals with the blocks b of the others alone, and counts turns of its own, in device memory, so
/// that nothing changes where a graph is launched again. In each turn it writes a head for every other member, and sees
/// those of all. Two sets of lines serve in turns, as on the host's board: who writes those of turn t has seen all in
/// turn t - 1, so their blocks have ended turn t - 2. Of heads and rooms there are four: a block is two turns ahead of
/// what it takes. It writes those of turn t once all were seen in turn t - 2, which they told of once they had ended
/// turn t - 4. Where a block's parts lie depends on its number alone, and not on how many blocks a call has: the blocks
/// of a call before may still be at work.
namespace brant::coll {

using simt::Word;

inline constexpr unsigned kStreamMembersMax = 8;
inline constexpr unsigned kStreamBlocksMax = 64;
inline constexpr Word kLinesOfBlock = 4096;  ///< Of 8 bytes each, for all members together.
inline constexpr Word kRoomOfBlock = Word{64} << 10;
inline constexpr unsigned kTurnsAhead = 2;  ///< So many turns a block puts before it takes.
inline constexpr unsigned kLineSets = 2;
inline constexpr unsigned kRoomSets = 2 + kTurnsAhead;  ///< Of rooms and heads.

/// A word, and what says by itself that it is there: written by one store of 16 bytes.
struct alignas(16) BoardLine {
  Word turn = 0;
  Word word = 0;
};

/// The memory of one member, as all have it. Zeros in the beginning; the first turn is 1.
struct StreamBoard {
  /// Written by the member's own kernels.
  struct alignas(128) OfBlock {
    Word turn;  ///< The last one that is over.
  };
  OfBlock blocks[kStreamBlocksMax];
  Word calls;  ///< That its kernels have ended.
  Word fault;  ///< Not 0: nothing goes any more.
  Word claim;  ///< Whoever counts it up first tells of the fault.
  /// Written by the others: what each of them calls in a turn. The upper half of `turn` is its number, the rest is of
  /// CallWords.
  alignas(128) BoardLine heads[kRoomSets][kStreamBlocksMax][kStreamMembersMax];
  // Behind it: lines and rooms.

  /// How many lines a block has from each member.
  BRANT_DEVICE_CODE static constexpr Word lines_from_each(unsigned members) { return kLinesOfBlock / members; }
  BRANT_DEVICE_CODE static Word lines_at(unsigned members, Word turn, unsigned block, unsigned from) {
    const Word first = (turn % kLineSets * kStreamBlocksMax + block) * kLinesOfBlock;
    return sizeof(StreamBoard) + (first + from * lines_from_each(members)) * sizeof(BoardLine);
  }
  /// A block's room is for parts of all members. Their places are multiples of 128 bytes.
  BRANT_DEVICE_CODE static Word room_at(Word turn, unsigned block) {
    return rooms_at() + (turn % kRoomSets * kStreamBlocksMax + block) * kRoomOfBlock;
  }
  BRANT_DEVICE_CODE static constexpr Word rooms_at() {
    return sizeof(StreamBoard) + Word{kLineSets} * kStreamBlocksMax * kLinesOfBlock * sizeof(BoardLine);
  }
  static constexpr Word bytes() noexcept { return rooms_at() + Word{kRoomSets} * kStreamBlocksMax * kRoomOfBlock; }
};
static_assert(sizeof(StreamBoard) % 128 == 0);

/// The parts of a block's room.
struct StreamRoom {
  BRANT_DEVICE_CODE static constexpr Word slot_bytes(unsigned members) { return kRoomOfBlock / members / 128 * 128; }
  BRANT_DEVICE_CODE static constexpr Word slice_bytes(unsigned members) {
    return kRoomOfBlock / 2 / members / 128 * 128;
  }
  static constexpr Word kResultsAt = kRoomOfBlock / 2;
};

/// Pinned memory of one member, by which its kernels and its CPU talk.
struct StreamTalk {
  // By the CPU:
  Word abort = 0;        ///< Not 0: kernels that wait give up.
  Word patience_ns = 0;  ///< How long they wait at most, each time.
  // By kernels that wait long, for who wants to know what a job hangs at:
  Word waits_call = 0;  ///< As `call` below; 0: none has.
  Word waits_member = 0;
  // By the kernel that finds a fault, `why` last:
  Word call = 0;  ///< Its number among the calls of streams.
  Word member = 0;
  Word their_low = 0, their_high = 0;  ///< CallWords.
  Word our_low = 0, our_high = 0;
  Word why = 0;  ///< StreamWhy.
};
enum class StreamWhy : std::uint8_t { none, late, other_call };

enum class StreamAlgorithm : std::uint8_t { alone, lines, slots, slices };

/// One call, as kernels take it: by value, the same in each launch of a graph.
struct StreamCall {
  // As all members have it:
  std::uint8_t kind;  ///< CollectiveKind.
  std::uint8_t type;  ///< DataType.
  std::uint8_t op;    ///< ReduceOp.
  StreamAlgorithm algorithm;
  std::uint8_t members;
  std::uint8_t root;
  Word bytes;      ///< Of the vector, or of one block.
  Word share;      ///< Of them, for each block of the grid: a multiple of 16.
  Word piece;      ///< Of its share, in each turn: likewise.
  Word rounds;     ///< Pieces of a share.
  Word low, high;  ///< CallWords.
  // This member's:
  std::uint8_t self;
  const std::byte* in;
  std::byte* out;
  StreamTalk* talk;
  StreamBoard* boards[kStreamMembersMax];  ///< Of all members, as this one's device reaches them.
};

}  // namespace brant::coll
