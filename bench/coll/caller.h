#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "bench/coll/coll.h"
#include "bench/mpi/mpi_library.h"
#include "bench/runner/machine.h"
#include "brant/coll/team.h"
#include "brant/core/runtime.h"

namespace brant::bench {

/// One call of a benchmark, on floats. `bytes` as nccl-tests count: what each process gives or gets, whichever is more.
struct CollCall {
  CollectiveKind kind = CollectiveKind::allreduce;
  const float* in = nullptr;  ///< CollMemory::there.
  float* out = nullptr;
  std::size_t bytes = 0;

  bool operator==(const CollCall&) const = default;
};

/// Memory of floats.
struct CollMemory {
  std::span<float> floats;  ///< As the CPU reads and writes them.
  float* there = nullptr;   ///< As calls take them: the same, or memory of a device with as many.
  std::shared_ptr<void> owner;
};

/// What carries calls out, in each process of a job: brant or a rival. All throw Error.
class CollCaller {
 public:
  CollCaller() = default;
  CollCaller(const CollCaller&) = delete;
  CollCaller& operator=(const CollCaller&) = delete;
  virtual ~CollCaller() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Zeroed. It goes before this.
  virtual CollMemory allocate(std::size_t floats) = 0;
  /// From the CPU's floats to where calls take them, and back.
  virtual void bring(CollMemory&) {}
  virtual void fetch(CollMemory&) {}
  /// So often, one behind the other.
  virtual void call(const CollCall& call, std::size_t times) = 0;
  /// The greatest of what all have, in place and at all.
  virtual void greatest(std::span<double> values) = 0;
  virtual double sum(double value) = 0;

  /// How the last call was carried out.
  [[nodiscard]] virtual std::string path() const = 0;
  [[nodiscard]] virtual MemoryKind memory() const { return MemoryKind::host; }
  [[nodiscard]] virtual Alloc alloc() const { return Alloc::malloc; }
  /// For the headline: "brant", "MPICH 5.0.2".
  [[nodiscard]] virtual std::string title() const = 0;
  /// "mpi", "nccl"; empty: brant.
  [[nodiscard]] virtual std::string peer() const = 0;
  [[nodiscard]] virtual std::string peer_version() const = 0;
  [[nodiscard]] virtual Machine machine() = 0;
};

std::unique_ptr<CollCaller> make_brant_caller(Runtime& runtime, Team& team, const CollBench& bench);
/// In the same processes as brant. Throws Error: no NCCL, no GPU, the processes do not meet.
std::unique_ptr<CollCaller> make_nccl_caller(Runtime& runtime, Team& team, const CollBench& bench);
/// In a process of a job of that MPI. One in a process.
std::unique_ptr<CollCaller> make_mpi_caller(const mpi::Choice& choice);

}  // namespace brant::bench
