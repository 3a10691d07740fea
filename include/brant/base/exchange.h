#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "brant/base/api.h"

namespace brant {

/// How processes that something else started tell each other where they are: a communicator of MPI, a process group, a
/// store of the program's own. All calls are made by the thread that makes and ends the Runtime, by all processes in
/// the same order; they may throw whatever derives from std::exception, which ends the start with its text.
class BRANT_API Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  [[nodiscard]] virtual int rank() = 0;  ///< Of this process, 0 to size - 1.
  [[nodiscard]] virtual int size() = 0;
  /// What each process gave, by rank. Some hundred bytes each, not all of one length. Called when all processes are
  /// there or on their way: it may block.
  virtual std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine) = 0;
  /// Begins to wait for all processes, without blocking: at the end of a job one that waits has to keep the network
  /// moving for those that still work. In MPI: MPI_Ibarrier.
  virtual void start_barrier() = 0;
  /// True once all have begun; then the next barrier may begin. In MPI: MPI_Test. Asked about every 50 us.
  virtual bool barrier_done() = 0;
};

}  // namespace brant
