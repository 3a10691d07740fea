#pragma once

#include <memory>
#include <string_view>

#include "brant/coll/collectives.h"
#include "brant/core/operation.h"
#include "ops/coll/device/stream_team.h"

namespace brant {
class TeamState;
}

namespace brant::coll {

/// Collectives of a team that streams carry out, as far as the CPU takes part. See Team.
class TeamStreams {
 public:
  explicit TeamStreams(TeamState& team) noexcept : team_(team) {}
  TeamStreams(const TeamStreams&) = delete;
  TeamStreams& operator=(const TeamStreams&) = delete;

  OpResult prepare() noexcept;
  Status enqueue(const Collective& call, port::Stream* stream) noexcept;
  /// By which way a stream would carry it out; empty: it would be refused.
  [[nodiscard]] std::string_view plan(const Collective& call) const noexcept;
  /// A fault that a kernel has found ends the team.
  void look() noexcept;
  /// The team has ended: kernels that wait give up.
  void abort() noexcept;
  /// The team is closed.
  void retire() noexcept;

 private:
  TeamState& team_;
  std::unique_ptr<StreamTeam> streams_;  ///< From `prepare` on.
};

}  // namespace brant::coll
