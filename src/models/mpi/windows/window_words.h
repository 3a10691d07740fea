#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/am/message.h"

/// What the members of a window say to each other, in messages of `am::ServiceId::mpi_windows`.
namespace brant::mpi {

enum class WindowWord : std::uint8_t {
  access = 1,  ///< To a target: an AccessHead, its runs, and data.
  flush,       ///< To a target: answer when all accesses that were sent before have been made.
  lock,        ///< To a target: `value` is MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE. The answer is the lock.
  unlock,      ///< To a target.
  posted,      ///< From a target: it has called MPI_Win_post.
  completed,   ///< To a target: MPI_Win_complete.
  greeting,    ///< Says nothing: who waits for another one hears of its death only if the two are connected.
  answer,      ///< `value` is an error class; the payload is what was asked for.
};

/// The header of every message.
struct WindowHeader {
  WindowWord word{};
  std::uint8_t unused = 0;
  std::uint16_t target = 0;   ///< Which rank of the process.
  std::uint32_t context = 0;  ///< Of the window.
  std::int32_t source = 0;    ///< The sender's rank in the window.
  std::int32_t value = 0;
  std::uint64_t ticket = 0;  ///< Of who waits for the answer; 0: nobody does.
};
static_assert(sizeof(WindowHeader) <= am::kHeaderBytesMax && std::is_trivially_copyable_v<WindowHeader>);

enum class AccessKind : std::uint8_t { put = 1, get, accumulate, get_accumulate, compare_and_swap };

/// Bytes of a window that lie together: `offset` is counted from its start, or is an address in one that is dynamic.
struct WindowRun {
  std::int64_t offset = 0;
  std::uint64_t bytes = 0;  ///< As they are packed.
};

/// The payload of `access` begins with it; the runs and the data come behind.
struct AccessHead {
  AccessKind kind{};
  std::uint8_t unused = 0;
  std::uint16_t operation = 0;  ///< The number of a predefined one.
  std::uint16_t element = 0;    ///< The number of the predefined type that is combined.
  std::uint16_t unused_too = 0;
  std::uint64_t runs = 0;
  std::uint64_t bytes = 0;  ///< Of all runs.
  std::uint64_t data_bytes = 0;
};
static_assert(sizeof(AccessHead) % 16 == 0 && std::is_trivially_copyable_v<AccessHead>);

}  // namespace brant::mpi
