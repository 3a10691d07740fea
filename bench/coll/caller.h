#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "bench/runner/machine.h"
#include "bench/runner/options.h"
#include "brant/coll/team.h"

namespace brant::bench {

/// One call of a benchmark, on floats. `bytes` as nccl-tests count: what each process gives or gets, whichever is more.
struct CollCall {
  CollectiveKind kind = CollectiveKind::allreduce;
  const float* in = nullptr;
  float* out = nullptr;
  std::size_t bytes = 0;
};

/// Memory of floats, filled by its maker.
struct CollMemory {
  std::span<float> floats;
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
  virtual void call(const CollCall& call) = 0;
  /// The greatest of what all have, in place and at all.
  virtual void greatest(std::span<double> values) = 0;
  virtual double sum(double value) = 0;

  /// How the last call was carried out.
  [[nodiscard]] virtual std::string path() const = 0;
  /// "mpi"; empty: brant.
  [[nodiscard]] virtual std::string peer() const = 0;
  [[nodiscard]] virtual std::string peer_version() const = 0;
  [[nodiscard]] virtual Machine machine() = 0;
};

std::unique_ptr<CollCaller> make_brant_caller(TeamWay way, Alloc alloc);
/// In a process that `mpi::run_as_job` has started. One in a process.
std::unique_ptr<CollCaller> make_mpi_caller(const std::string& library);

}  // namespace brant::bench
