#include "ops/coll/reading.h"

#include <cstring>

namespace brant::coll {
namespace {

using Kind = CollectiveKind;

bool goes_to_root(Kind kind) noexcept { return kind == Kind::reduce || kind == Kind::gather; }

/// Whether one member reads what another one gives.
bool reads(const Work& work, unsigned reader, unsigned giver) noexcept {
  if (reader == giver) return false;
  if (comes_from_root(work.kind)) return giver == work.root;
  if (goes_to_root(work.kind)) return reader == work.root && work.block_bytes(giver) != 0;
  if (work.kind == Kind::scan || work.kind == Kind::exscan) return giver < reader;
  return work.block_bytes(giver) != 0;
}

bool reads_results(const Work& work) noexcept { return work.kind == Kind::allreduce; }

/// Of what a member gives.
std::uint64_t bytes_given(const Work& work, unsigned members, unsigned giver) noexcept {
  const bool one_for_each =
      work.kind == Kind::scatter || work.kind == Kind::alltoall || work.kind == Kind::reduce_scatter;
  return one_for_each ? work.in_block_offset(members - 1) + work.in_block_bytes(members - 1) : work.block_bytes(giver);
}

/// What this member gives is overwritten while others may still read it.
bool spoils_its_gift(const Work& work) noexcept {
  const bool writes_elsewhere = work.kind == Kind::reduce_scatter || work.kind == Kind::alltoall ||
                                work.kind == Kind::scan || work.kind == Kind::exscan;
  return writes_elsewhere && work.in == work.out;
}

void copy_bytes(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
  if (bytes != 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

Reading::Reading(Engine& engine, const Members& members, std::span<Peer* const> peers)
    : members_(members), table_(MappingTable::of(engine)), theirs_(members.count) {
  for (unsigned m = 0; m < members.count; ++m) {
    if (peers[m] != nullptr) theirs_[m].mappings = &table_->with(*peers[m]);
  }
}

SharedPlaces Reading::places(const Work& work) noexcept {
  SharedPlaces own;
  if (spoils_its_gift(work)) return own;
  const unsigned self = members_.self;
  const auto describe = [&](const void* data, std::uint64_t bytes, std::uint64_t& id, std::uint64_t& offset) {
    std::uint64_t known = 0;
    for (unsigned m = 0; m < members_.count; ++m) {
      if (!reads(work, m, self)) continue;
      const Result<ExportedPlace> place = theirs_[m].mappings->exports.describe(data, known);
      if (!place || place->bytes < bytes) return false;
      known = place->buffer_id;
      offset = place->offset;
    }
    id = known;
    return true;
  };
  if (!describe(work.in, bytes_given(work, members_.count, self), own.in_id, own.in_offset)) return {};
  if (reads_results(work) && !describe(work.out, work.bytes, own.out_id, own.out_offset)) return {};
  return own;
}

void Reading::put(TurnBoard& board, const Work& work, std::uint64_t round) noexcept {
  if (round == 0) {
    const SharedPlaces own = places(work);
    std::memcpy(board.own_payload(), &own, sizeof(own));
  } else if (round == 1) {
    *board.own_payload() = std::byte{can_};
  }
}

/// False: a buffer that somebody has to read cannot be mapped, which all see alike.
bool Reading::map(const TurnBoard& board, const Work& work) noexcept {
  const unsigned self = members_.self;
  can_ = true;
  for (unsigned giver = 0; giver < members_.count; ++giver) {
    SharedPlaces there;
    std::memcpy(&there, board.line(giver).payload, sizeof(there));
    bool is_read = false;
    for (unsigned m = 0; m < members_.count && !is_read; ++m) is_read = reads(work, m, giver);
    if (is_read && there.in_id == 0) return false;
    if (!can_ || !reads(work, self, giver)) continue;
    Theirs& theirs = theirs_[giver];
    Imports& imports = theirs.mappings->imports;
    theirs.in = imports.take(there.in_id, there.in_offset, bytes_given(work, members_.count, giver), Reach::cpu);
    can_ = theirs.in.address != nullptr;
    if (!can_ || !reads_results(work)) continue;
    theirs.out = imports.take(there.out_id, there.out_offset, work.bytes, Reach::cpu);
    can_ = theirs.out.address != nullptr;
  }
  return true;
}

Reading::Next Reading::take(TurnBoard& board, const Work& work, const Plan& plan, std::uint64_t round) noexcept {
  if (deserted_) return Next::wait;
  if (round == 0) return map(board, work) ? Next::go_on : Next::give_up;
  if (round == 1) {
    for (unsigned m = 0; m < members_.count; ++m) {
      if (*board.line(m).payload == std::byte{0}) return Next::give_up;
    }
  }
  if (round + 1 == plan.rounds) return Next::go_on;  // everybody has read
  move(work, plan, round - 1);
  deserted_ = board.is_deserted();
  return deserted_ ? Next::wait : Next::go_on;
}

void Reading::end() noexcept {
  for (Theirs& theirs : theirs_) {
    theirs.in = {};
    theirs.out = {};
  }
  deserted_ = false;
}

void Reading::fold_inputs(const Work& work, unsigned count, std::uint64_t offset, std::byte* out,
                          std::uint64_t bytes) noexcept {
  if (count == 0 || bytes == 0) return;
  const void* inputs[kBoardMembersMax];
  for (unsigned m = 0; m < count; ++m) inputs[m] = in_of(work, m) + offset;
  fold(work.folding, std::span(inputs, count), out, bytes / work.element);
}

void Reading::combine_slice(const Work& work, const Extent& slice) noexcept {
  fold_inputs(work, members_.count, slice.offset, work.out + slice.offset, slice.bytes);
}

void Reading::copy_slices(const Work& work, const Plan& plan, std::uint64_t step) noexcept {
  for (unsigned i = 1; i < members_.count; ++i) {
    const unsigned m = (members_.self + i) % members_.count;
    const Extent theirs = slice_of(work.bytes, work.element, plan, members_.count, m, step);
    copy_bytes(work.out + theirs.offset, theirs_[m].out.address + theirs.offset, theirs.bytes);
  }
}

/// Every block that comes here, the next member's first: not all read the same memory at a time.
void Reading::copy_blocks(const Work& work, const Plan& plan, std::uint64_t step) noexcept {
  for (unsigned i = 1; i <= members_.count; ++i) {
    const unsigned m = (members_.self + i) % members_.count;
    const Extent piece = piece_of(work.block_bytes(m), plan.piece, step);
    const std::uint64_t begin = work.kind == Kind::alltoall ? members_.self * work.bytes : 0;
    copy_bytes(work.out + work.block_offset(m) + piece.offset, in_of(work, m) + begin + piece.offset, piece.bytes);
  }
}

void Reading::move(const Work& work, const Plan& plan, std::uint64_t step) noexcept {
  const Extent piece = piece_of(work.bytes, plan.piece, step);
  const unsigned self = members_.self;
  const bool is_root = work.is_root(members_);
  switch (work.kind) {
    case Kind::allreduce:
      if (step > 0) copy_slices(work, plan, step - 1);
      return combine_slice(work, slice_of(work.bytes, work.element, plan, members_.count, self, step));
    case Kind::broadcast:
      if (!is_root) copy_bytes(work.out + piece.offset, in_of(work, work.root) + piece.offset, piece.bytes);
      return;
    case Kind::reduce:
      if (is_root) fold_inputs(work, members_.count, piece.offset, work.out + piece.offset, piece.bytes);
      return;
    case Kind::scan:
    case Kind::exscan:
      return fold_inputs(work, self + (work.kind == Kind::scan ? 1 : 0), piece.offset, work.out + piece.offset,
                         piece.bytes);
    case Kind::reduce_scatter: {
      const Extent own = piece_of(work.in_block_bytes(self), plan.piece, step);
      return fold_inputs(work, members_.count, work.in_block_offset(self) + own.offset, work.out + own.offset,
                         own.bytes);
    }
    case Kind::scatter:
      if (work.out != nullptr) {
        copy_bytes(work.out + piece.offset, in_of(work, work.root) + self * work.bytes + piece.offset, piece.bytes);
      }
      return;
    case Kind::gather:
      if (is_root) copy_blocks(work, plan, step);
      return;
    case Kind::allgather:
    case Kind::alltoall: return copy_blocks(work, plan, step);
    case Kind::barrier:
    case Kind::neighbour_allgather:
    case Kind::neighbour_alltoall:
    case Kind::none: return;
  }
}

}  // namespace brant::coll
