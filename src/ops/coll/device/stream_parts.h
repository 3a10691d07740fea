#pragma once

#include "brant/coll/collectives.h"
#include "ops/coll/device/stream_board.h"

namespace brant::coll {

/// Who gives what to whom in one call, and where it lies: in the program's memory, and on the boards.
template <typename Machine>
class StreamParts {
 public:
  BRANT_DEVICE_CODE StreamParts(Machine& machine, const StreamCall& call)
      : kind(static_cast<CollectiveKind>(call.kind)),
        members(call.members),
        self(call.self),
        in(call.in == nullptr ? nullptr : machine.reach(call.in)),
        out(call.out == nullptr ? nullptr : machine.reach(call.out)),
        share(piece_of(call.bytes, call.share, machine.block())),
        machine_(machine),
        call_(call) {}

  /// Some bytes of a vector or block.
  struct Part {
    Word offset = 0;
    Word bytes = 0;
  };

  const CollectiveKind kind;
  const unsigned members;
  const unsigned self;
  const std::byte* const in;
  std::byte* const out;
  const Part share;  ///< Of this block.

  BRANT_DEVICE_CODE Part piece(Word round) const { return part_of_share(call_.piece, round); }
  /// What member `m` combines for all in a round.
  BRANT_DEVICE_CODE Part slice(unsigned m, Word round) const { return part_of_share(call_.piece, round * members + m); }

  BRANT_DEVICE_CODE bool gives(unsigned from, unsigned to) const {
    switch (kind) {
      case CollectiveKind::broadcast:
      case CollectiveKind::scatter: return from == call_.root;
      case CollectiveKind::reduce:
      case CollectiveKind::gather: return to == call_.root;
      case CollectiveKind::scan:
      case CollectiveKind::exscan: return from < to;
      case CollectiveKind::allreduce:
      case CollectiveKind::allgather:
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::alltoall: return true;
      default: return false;
    }
  }
  /// Where in this member's `in` the part of `to` is.
  BRANT_DEVICE_CODE Word gift_at(unsigned to) const {
    const bool blocks =
        kind == CollectiveKind::scatter || kind == CollectiveKind::alltoall || kind == CollectiveKind::reduce_scatter;
    return blocks ? to * call_.bytes : 0;
  }
  /// Where in this member's `out` the part of `from` belongs.
  BRANT_DEVICE_CODE Word place_of(unsigned from) const {
    const bool blocks =
        kind == CollectiveKind::allgather || kind == CollectiveKind::gather || kind == CollectiveKind::alltoall;
    return blocks ? from * call_.bytes : 0;
  }
  BRANT_DEVICE_CODE bool combines() const {
    return kind == CollectiveKind::allreduce || kind == CollectiveKind::reduce || is_prefix() ||
           kind == CollectiveKind::reduce_scatter;
  }
  BRANT_DEVICE_CODE bool is_prefix() const { return kind == CollectiveKind::scan || kind == CollectiveKind::exscan; }
  /// The next other member: each begins with another one, so that no link has all of them at once.
  BRANT_DEVICE_CODE unsigned other(unsigned step) const { return (self + step) % members; }

  /// How many members' parts this one combines: those of the lowest ranks. 0: it gets nothing.
  BRANT_DEVICE_CODE unsigned combined() const {
    if (kind == CollectiveKind::reduce && self != call_.root) return 0;
    return !is_prefix() ? members : self + (kind == CollectiveKind::scan ? 1 : 0);
  }
  BRANT_DEVICE_CODE bool wants_result(unsigned member) const {
    return kind != CollectiveKind::reduce || member == call_.root;
  }

  BRANT_DEVICE_CODE std::byte* room(unsigned member, Word turn) const {
    return at(member, StreamBoard::room_at(turn, machine_.block()));
  }
  BRANT_DEVICE_CODE BoardLine* lines(unsigned member, unsigned from, Word turn) const {
    return reinterpret_cast<BoardLine*>(at(member, StreamBoard::lines_at(members, turn, machine_.block(), from)));
  }
  BRANT_DEVICE_CODE std::byte* slot(unsigned member, unsigned from, Word turn) const {
    return room(member, turn) + from * StreamRoom::slot_bytes(members);
  }
  BRANT_DEVICE_CODE std::byte* slice_of(unsigned member, std::byte* room) const {
    return room + member * StreamRoom::slice_bytes(members);
  }
  BRANT_DEVICE_CODE std::byte* result_of(unsigned member, std::byte* room) const {
    return slice_of(member, room + StreamRoom::kResultsAt);
  }

 private:
  BRANT_DEVICE_CODE static Part piece_of(Word bytes, Word size, Word index) {
    const Word offset = size * index < bytes ? size * index : bytes;
    return {offset, size < bytes - offset ? size : bytes - offset};
  }
  BRANT_DEVICE_CODE Part part_of_share(Word size, Word index) const {
    const Part part = piece_of(share.bytes, size, index);
    return {share.offset + part.offset, part.bytes};
  }
  BRANT_DEVICE_CODE std::byte* at(unsigned member, Word offset) const {
    return reinterpret_cast<std::byte*>(machine_.reach(call_.boards[member])) + offset;
  }

  Machine& machine_;
  const StreamCall& call_;
};

}  // namespace brant::coll
