#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/coll/extent.h"
#include "ops/coll/plan.h"
#include "ops/coll/turn_board.h"
#include "ops/coll/work.h"
#include "ops/mapping/table.h"

namespace brant::coll {

/// Where the others find what a member gives and what it gets, as it stands in its line. An id of zero: they cannot map
/// it, or need not.
struct SharedPlaces {
  std::uint64_t in_id = 0;
  std::uint64_t in_offset = 0;
  std::uint64_t out_id = 0;
  std::uint64_t out_offset = 0;
};
static_assert(sizeof(SharedPlaces) <= kLinePayload);

/// One call whose members read each other's buffers where they are. In the first turn each says where that is, in the
/// second whether it can read all that it has to; then they read, a step in each turn; and in the last one nobody reads
/// any more, so that buffers are their callers' again.
///
/// All come to the same: if a buffer cannot be mapped, or somebody could not map one, all see that in the same turn,
/// when nothing has been written yet, and the call goes through slots.
class Reading {
 public:
  enum class Next : std::uint8_t {
    go_on,
    give_up,  ///< The call begins anew, by another plan.
    wait,  ///< A member's call has failed while others read: what it gave counts no more. Word of that is on its way.
  };

  /// The peers by member; null: this process. Throws bad_alloc.
  Reading(Engine& engine, const Members& members, std::span<Peer* const> peers);

  /// Before the turn is published.
  void put(TurnBoard& board, const Work& work, std::uint64_t round) noexcept;
  /// Once all are there.
  Next take(TurnBoard& board, const Work& work, const Plan& plan, std::uint64_t round) noexcept;
  /// The call has ended, or is not carried out so any more.
  void end() noexcept;

 private:
  struct Theirs {
    PeerMappings* mappings = nullptr;
    MappedMemory in, out;
  };

  [[nodiscard]] SharedPlaces places(const Work& work) noexcept;
  bool map(const TurnBoard& board, const Work& work) noexcept;
  void move(const Work& work, const Plan& plan, std::uint64_t step) noexcept;
  void combine_slice(const Work& work, const Extent& slice) noexcept;
  void copy_slices(const Work& work, const Plan& plan, std::uint64_t step) noexcept;
  void copy_blocks(const Work& work, const Plan& plan, std::uint64_t step) noexcept;
  /// What members [0, `count`) give there, this member's included.
  void fold_inputs(const Work& work, unsigned count, std::uint64_t offset, std::byte* out,
                   std::uint64_t bytes) noexcept;
  [[nodiscard]] const std::byte* in_of(const Work& work, unsigned member) const noexcept {
    return member == members_.self ? work.in : theirs_[member].in.address;
  }

  const Members& members_;
  std::shared_ptr<MappingTable> table_;
  std::vector<Theirs> theirs_;
  bool can_ = false;
  bool deserted_ = false;
};

}  // namespace brant::coll
