#pragma once

#include "models/halo/direct_by_device.h"

namespace brant::halo {

/// Kernels that end with each exchange: what is the same whether they are launched one by one or as a graph.
class DirectByLaunches : public DirectByDevice {
 protected:
  DirectByLaunches(Runtime& runtime, const Layout& layout, DirectCopies& plan, port::Kernel* kernel);

  /// No exchange was given up by the kernels.
  [[nodiscard]] bool all_done() const noexcept;
  void abort() noexcept override;
  void stop() noexcept override;
  /// From before a launch to the end of what was launched: nobody waits for the device meanwhile, since the kernels
  /// wait for those of the neighbours.
  void note_launched(bool may_run) noexcept;

  notify::KernelControl control_;

 private:
  bool may_run_ = false;
  Memory words_;  ///< Pinned: what the kernels tell, and what they are asked.
};

/// A kernel is launched for each exchange.
class DirectLaunched final : public DirectByLaunches {
 public:
  DirectLaunched(Runtime& runtime, const Layout& layout, DirectCopies& plan);
  ~DirectLaunched() override { give_up(); }

 private:
  DirectLaunched(Runtime& runtime, const Layout& layout, DirectCopies& plan, const DirectKernel& kernel)
      : DirectByLaunches(runtime, layout, plan, kernel.inner()), kernel_(kernel) {}

  Task<bool> run_kernel(std::uint64_t first, std::uint64_t times) override;

  DirectKernel kernel_;
};

}  // namespace brant::halo
