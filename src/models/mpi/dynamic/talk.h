#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/mpi/communicator.h"
#include "models/mpi/members.h"

namespace brant::mpi {

class RankState;

/// What two processes say to each other before there is a communicator between their groups.
class Talk {
 public:
  /// `tag`: no other talk of either has it.
  Talk(RankState& rank, RankId other, std::int32_t tag);
  /// By a communicator that both are in, with messages that the program's receives do not match.
  Talk(RankState& rank, Communicator& common, int other, std::int32_t tag) noexcept;

  /// Gives some bytes and gets the other's. Throws MPI_ERR_PROC_ABORTED where it has died.
  [[nodiscard]] std::vector<std::byte> swap(std::span<const std::byte> given);

 private:
  void swap(std::span<const std::byte> given, std::span<std::byte> got);

  RankState& rank_;
  const std::unique_ptr<Communicator> own_;  ///< Null where there is one anyway.
  Communicator& between_;
  const int other_;
  const std::int32_t tag_;
};

/// What the members of a communicator do together while one of them talks to strangers.
/// The bytes of each member, at all.
[[nodiscard]] std::vector<std::vector<std::byte>> gather_bytes(Communicator& communicator,
                                                               std::span<const std::byte> own);
/// Those of one member, at all.
[[nodiscard]] std::vector<std::byte> spread_bytes(Communicator& communicator, int root, std::vector<std::byte> bytes);
[[nodiscard]] int spread_number(Communicator& communicator, int root, int number);

}  // namespace brant::mpi
