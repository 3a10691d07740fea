#pragma once

#include "models/halo/direct_launched.h"

namespace brant::halo {

/// The kernels of an exchange are recorded in a graph, which is launched for each: by one call of the driver. They find
/// the number of the exchange in device memory, since a graph repeats its arguments.
class DirectGraph final : public DirectByLaunches {
 public:
  DirectGraph(Runtime& runtime, const Layout& layout, DirectCopies& plan);
  ~DirectGraph() override;

  /// Records it, or records it again.
  void bind() override;

 private:
  DirectGraph(Runtime& runtime, const Layout& layout, DirectCopies& plan, const CountedKernel& kernel);

  void drop_graph() noexcept;
  Task<bool> run_kernel(std::uint64_t first, std::uint64_t times) override;

  CountedKernel kernel_;
  Memory words_;  ///< On the device: of `count_`.
  DirectCount count_;
  port::Graph* graph_ = nullptr;
};

}  // namespace brant::halo
