#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/coll/call_record.h"

namespace brant::mpi {

/// One collective of the members that live in this process: the part of each, and how far it has come.
struct SharedCall {
  static constexpr unsigned kNobody = ~0u;
  enum class Phase : std::uint8_t { bringing, exchanging, returning };

  explicit SharedCall(std::size_t members) : parts(members) {}

  [[nodiscard]] coll::Work& work(std::size_t index) const noexcept { return parts[index]->work; }
  /// What all parts have in common can be read of any.
  [[nodiscard]] const coll::Work& common() const noexcept { return parts.front()->work; }
  /// For the next one; no part is left.
  void reset() noexcept {
    arrived = 0;
    first = odd = kNobody;
    staged = false;
    phase = Phase::bringing;
    exchanges = 0;
  }
  [[nodiscard]] bool complete() const noexcept { return arrived == parts.size(); }

  std::vector<coll::CallRecord*> parts;  ///< By index among the members here; null: it has not come.
  unsigned arrived = 0;
  unsigned first = kNobody;  ///< The index of who came first: the others call what that one does.
  unsigned odd = kNobody;    ///< Who does not.
  bool staged = false;       ///< Some part has memory of a device.
  Phase phase = Phase::bringing;
  std::uint64_t exchanges = 0;  ///< How many calls of the team of processes have ended for it.
};

}  // namespace brant::mpi
