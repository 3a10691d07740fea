#pragma once

#include <cstddef>
#include <memory>

#include "bench/mpi/mpi_library.h"
#include "bench/runner/options.h"
#include "brant/base/buffer.h"

namespace brant::bench::mpi {

/// Zeroed memory to exchange: of malloc, or of a window that MPI has allocated, which of brant's MPI may be of any
/// kind. It goes before MPI_Finalize.
class MpiMemory {
 public:
  /// Collective. Throws Error.
  MpiMemory(const Library& mpi, MemoryKind kind, Alloc alloc, std::size_t bytes);

  [[nodiscard]] std::byte* at(std::size_t offset) const noexcept {
    return static_cast<std::byte*>(block_.get()) + offset;
  }

 private:
  std::shared_ptr<void> block_;
};

}  // namespace brant::bench::mpi
