#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "models/mpi/object.h"

namespace brant::mpi {

/// Which rank of the job, whatever process it lives in: its rank in MPI_COMM_WORLD.
struct RankId {
  std::int32_t value = -1;
  constexpr auto operator<=>(const RankId&) const noexcept = default;
};

/// The ranks of a group, in order. Never changed after it was made, so groups and communicators share one.
class Members {
 public:
  explicit Members(std::vector<RankId> ids) noexcept : ids_(std::move(ids)) {}

  [[nodiscard]] int size() const noexcept { return static_cast<int>(ids_.size()); }
  [[nodiscard]] RankId operator[](int rank) const noexcept { return ids_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool has(int rank) const noexcept { return rank >= 0 && rank < size(); }
  [[nodiscard]] std::span<const RankId> ids() const noexcept { return ids_; }
  /// The rank here of a rank of the job; MPI_UNDEFINED: it is no member.
  [[nodiscard]] int find(RankId id) const noexcept {
    if (has(id.value) && (*this)[id.value] == id) return id.value;
    for (int rank = 0; rank < size(); ++rank) {
      if ((*this)[rank] == id) return rank;
    }
    return MPI_UNDEFINED;
  }

 private:
  std::vector<RankId> ids_;
};

using SharedMembers = std::shared_ptr<const Members>;

/// What a handle of a group points to.
struct Group final : Object {
  static constexpr ObjectKind kKind = ObjectKind::group;
  Group(SharedMembers members_in, std::uint64_t session_in) noexcept
      : Object(kKind), members(std::move(members_in)), session(session_in) {}

  const SharedMembers members;
  const std::uint64_t session;  ///< The number of the session that it derives from; 0: of none.
};

}  // namespace brant::mpi
