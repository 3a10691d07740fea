#pragma once

#include "brant/core/wait_place.h"
#include "brant/notify/persistent_kernel.h"
#include "models/halo/direct_by_device.h"

namespace brant::halo {

/// A kernel stays on the device, and does an exchange for each item that it is handed.
class DirectResident final : public DirectByDevice {
 public:
  DirectResident(Runtime& runtime, const Layout& layout, DirectCopies& plan);
  ~DirectResident() override { give_up(); }

  /// It is launched by the next exchange: until then others can be bound, which is no work beside a kernel that stays.
  void bind() override;

 private:
  void launch();
  DirectResident(Runtime& runtime, const Layout& layout, DirectCopies& plan, const ResidentExchange& kernel);

  Task<bool> run_kernel(std::uint64_t first, std::uint64_t times) override;
  void abort() noexcept override { running_.abort(); }
  void stop() noexcept override;
  [[nodiscard]] std::chrono::nanoseconds patience_for(std::uint64_t times) const noexcept;
  [[nodiscard]] Completion answer() noexcept;

  ResidentExchange kernel_;
  PersistentKernel running_;
  Bell finished_;
  bool launched_ = false;  ///< With the fields of now.
  std::uint64_t items_ = 0;
  Op finish_;              ///< Of an exchange,
  Op end_;                 ///< and of the kernel: whichever comes first.
  bool answered_ = false;  ///< One of them has come.
  detail::WaitPlace waiter_;
};

}  // namespace brant::halo
