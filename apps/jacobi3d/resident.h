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

/// A block of device memory whose iterations one kernel does, which stays on the device, with a block for each SM at
/// most: it exchanges the ghosts and sweeps, and the CPU is told when a number of iterations is done. In mode direct it
/// writes into the neighbours' fields. In modes stream and stacked it packs and unpacks, and the CPU sends and receives
/// meanwhile. Of the worker's thread. Block, runtime and exchanges outlive it.
class ResidentSolver {
 public:
  /// An exchange for each field, in this mode and bound to it. Launches the kernel. Throws what PersistentKernel does.
  ResidentSolver(brant::Runtime& runtime, Block& block, std::span<brant::HaloExchange, 2> exchanges,
                 brant::HaloMode mode, bool overlaps, bool computes);
  ~ResidentSolver();
  ResidentSolver(const ResidentSolver&) = delete;
  ResidentSolver& operator=(const ResidentSolver&) = delete;

  /// The next iterations: every process does as many. What is then the current field of the block is swapped so. Throws
  /// what HaloExchange::run does.
  brant::Task<void> run(std::uint64_t times);
  /// Of the first iterations of the last run, as many as there was room for.
  [[nodiscard]] std::span<const Lap> laps() const noexcept;

 private:
  template <typename Plan>
  [[nodiscard]] Resident<Plan> work_of(const std::array<Plan, 2>& plans, unsigned blocks, std::int64_t planes,
                                       bool overlaps);
  void launch_direct(bool overlaps);
  void launch_messages(bool overlaps);
  brant::Task<bool> exchange_second(std::uint64_t times);
  brant::Task<bool> iterate(std::uint64_t times);
  [[nodiscard]] brant::Completion answer() noexcept;
  [[nodiscard]] std::uint64_t uses_of(std::size_t field, std::uint64_t times) const noexcept;

  brant::Runtime& runtime_;
  Block& block_;
  std::span<brant::HaloExchange, 2> exchanges_;
  const bool computes_;
  brant::Notifier notifier_;
  brant::Bell together_;
  brant::Bell finished_;
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
