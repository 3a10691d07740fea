#pragma once

#include "models/halo/direct_by_device.h"

namespace brant::halo {

/// A kernel is launched for each exchange.
class DirectLaunched final : public DirectByDevice {
 public:
  DirectLaunched(Runtime& runtime, const Layout& layout, DirectCopies& plan);
  ~DirectLaunched() override { give_up(); }

 private:
  DirectLaunched(Runtime& runtime, const Layout& layout, DirectCopies& plan, const DirectKernel& kernel);

  Task<bool> run_kernel(std::uint64_t first, std::uint64_t times) override;
  void abort() noexcept override;
  void stop() noexcept override;

  DirectKernel kernel_;
  Memory words_;  ///< Pinned: what the kernel tells, and what it is asked.
  notify::KernelControl control_;
};

}  // namespace brant::halo
