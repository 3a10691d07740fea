#pragma once

#include <cstdint>
#include <vector>

#include "ops/coll/plan.h"
#include "ops/coll/work.h"

namespace brant::coll {

/// One thing that a member does in a call by messages. A member does its steps one after another; a receive waits for
/// the next message of its peer, which is the one meant, since messages of a pair keep their order.
struct Step {
  enum class What : std::uint8_t {
    send,     ///< `bytes` from `from` to member `peer`.
    receive,  ///< The next message of `peer`, to `to`.
    hold,     ///< The same, kept until it is combined.
    combine,  ///< What members [0, `peer`) gave: this one's at `from`, the others' as held; to `to`. The held ones go.
    copy,     ///< From `from` to `to`, in this process.
  };

  What what = What::copy;
  unsigned peer = 0;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::uint64_t bytes = 0;
};

/// The steps of one round, appended to `steps`. Pure: what the members send and await of each other in the same round
/// and the ones before it fits together.
void add_steps(const Members& members, const Work& work, const Plan& plan, std::uint64_t round,
               std::vector<Step>& steps);

}  // namespace brant::coll
