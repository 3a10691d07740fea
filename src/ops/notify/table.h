#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "brant/notify/notifier.h"
#include "core/engine.h"
#include "ops/mapping/table.h"
#include "ops/notify/board.h"
#include "ops/notify/resident_kernel.h"
#include "ops/notify/surroundings.h"

namespace brant {

/// The notifiers of one runtime and its persistent kernels.
class NotifyTable final : public Service, private DeferredWork {
 public:
  explicit NotifyTable(Engine& engine);
  ~NotifyTable() override;

  [[nodiscard]] Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] MappingTable& mappings() const noexcept { return *mappings_; }

  /// Throws as Notifier does.
  BellBoard& open(const NotifierOptions& options);
  /// Boards that nobody uses are freed later, outside progress.
  void look_at_closed() noexcept { engine_.deferrals().defer(*this); }

  /// Throws bad_alloc.
  ResidentKernel& add(BellBoard& board);
  void drop(ResidentKernel& kernel) noexcept;
  /// The part of the device that persistent kernels hold: 1 is all of it.
  [[nodiscard]] double held() const noexcept;
  /// Blocks of a kernel that run at once in the rest. Throws Error: not_supported, device_failed.
  [[nodiscard]] unsigned room_for(port::Kernel* kernel, const LaunchShape& shape) const;
  /// "kernel 'jacobi' runs", for errors of whoever waits for it.
  [[nodiscard]] std::string describe_kernels() const;

  /// Asked once, at the first launch, which warns of what is dangerous. Throws as `surroundings_of`.
  const Surroundings& surroundings();
  /// "; it may be that ..." for reports of kernels that did not run or waited in vain; empty: nothing is known.
  [[nodiscard]] std::string describe_suspects() const;

  bool stalled(std::chrono::nanoseconds idle, bool for_ever) noexcept override;

 private:
  void run_deferred() noexcept override;

  Engine& engine_;
  const std::shared_ptr<MappingTable> mappings_;
  std::vector<std::unique_ptr<BellBoard>> boards_;
  std::vector<std::unique_ptr<ResidentKernel>> kernels_;
  std::optional<Surroundings> around_;
};

}  // namespace brant
