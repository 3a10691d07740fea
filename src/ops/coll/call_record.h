#pragma once

#include <cstdint>

#include "brant/base/intrusive_list.h"
#include "core/completions.h"
#include "ops/coll/device/staging.h"
#include "ops/coll/plan.h"
#include "ops/coll/work.h"

namespace brant::coll {

/// One call of a team, from its post to its end.
struct CallRecord final : OpOwner {
  CallRecord() noexcept {
    cancel = [](OpOwner&) noexcept {};  // the others count on it
  }

  ListHook<CallRecord> hook;
  Work work;
  Plan plan;
  Staging* staging = nullptr;  ///< Where a buffer lies in device memory: lent by the table.
  OpResult result;
  std::uint64_t number = 0;  ///< In its team; 0: not its turn yet.
  bool pooled = false;       ///< Lent by the table, for an operation; else it lies in the call that waits for it.
  bool ended = false;
  bool exchanged = false;  ///< Of a staged call: the members are done with it.
  // On the board:
  bool published = false;  ///< This member is in the turn of the round.
  std::uint64_t round = 0;
  // For those who look whether it goes on:
  std::uint64_t moved_before = 0;
  std::int64_t waits_since_ns = 0;
};

}  // namespace brant::coll
