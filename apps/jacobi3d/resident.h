#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "brant/brant.h"
#include "brant/device.h"
#include "brant/halo.h"
#include "brant/notify/persistent_kernel.h"
#include "resident_steps.h"
#include "solver.h"

namespace jacobi {

using ResidentKernel = brant::Kernel<brant::notify::KernelControl, Resident>;

/// What the blocks of the kernel that stays take one after another, of a block of so many cells.
std::int64_t tiles_of(const Extent& cells, std::int64_t planes = kPlanesPerPiece) noexcept;

/// Throws what Kernel does.
ResidentKernel load_resident_kernel(brant::Device device);

/// A block of device memory whose iterations one kernel does, which stays on the device and holds all of it: it
/// exchanges the ghosts with the neighbours' kernels and sweeps, and the CPU is told when a number of iterations is
/// done. Of the worker's thread. Block, runtime and exchanges outlive it.
class ResidentSolver {
 public:
  /// An exchange for each field, in mode direct and bound to it. Launches the kernel. Throws what PersistentKernel
  /// does.
  ResidentSolver(brant::Runtime& runtime, Block& block, std::span<brant::HaloExchange, 2> exchanges, bool overlaps,
                 bool computes);
  ~ResidentSolver();
  ResidentSolver(const ResidentSolver&) = delete;
  ResidentSolver& operator=(const ResidentSolver&) = delete;

  /// The next iterations: every process does as many. What is then the current field of the block is swapped so. Throws
  /// what HaloExchange::run does.
  brant::Task<void> run(std::uint64_t times);
  /// Of the first iterations of the last run, as many as there was room for.
  [[nodiscard]] std::span<const Lap> laps() const noexcept;

 private:
  brant::Task<bool> exchange_second(std::uint64_t times);
  brant::Task<bool> iterate(std::uint64_t times);
  [[nodiscard]] brant::Completion answer() noexcept;
  [[nodiscard]] std::uint64_t uses_of(std::size_t field, std::uint64_t times) const noexcept;

  brant::Runtime& runtime_;
  Block& block_;
  std::span<brant::HaloExchange, 2> exchanges_;
  const bool computes_;
  ResidentKernel kernel_;
  brant::Notifier notifier_;
  brant::Bell finished_;
  brant::Memory together_;
  brant::Memory laps_;
  brant::PersistentKernel running_;
  std::uint64_t done_ = 0;      ///< Iterations.
  std::uint64_t last_run_ = 0;  ///< Of the last run.
  std::uint64_t items_ = 0;
  brant::Op finish_;  ///< Of the iterations that were asked for,
  brant::Op end_;     ///< and of the kernel: whichever comes first.
  std::optional<brant::Promise<>> waiting_;
};

}  // namespace jacobi
