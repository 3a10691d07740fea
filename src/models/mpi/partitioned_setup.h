#pragma once

#include <cstdint>

#include "models/mpi/communicator.h"

namespace brant::mpi {

/// What the sender of a message in partitions tells its receiver once, when both are made: by which tags the partitions
/// come, and how many they are. These words and the partitions have contexts of their own, so that they match neither
/// each other nor the program's messages.
struct PartitionedSetup {
  std::int32_t first_tag = 0;
  std::int32_t partitions = 0;
  std::uint64_t bytes = 0;  ///< Of all of them.

  static constexpr std::uint32_t kPartitioned = 1u << 30;

  [[nodiscard]] static std::uint32_t context(const Communicator& communicator) noexcept {
    return communicator.own_context() | kPartitioned;
  }
  [[nodiscard]] static std::uint32_t data_context(const Communicator& communicator) noexcept {
    return communicator.context | kPartitioned;
  }
};

}  // namespace brant::mpi
