#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "brant/pgas/device_window.cuh"
#include "core/deferred_work.h"
#include "models/pgas/window_proxy.h"

namespace brant {

class SpaceState;

/// The windows for kernels of a space: what those have that are not mapped as a whole.
class DeviceWindows final : private DeferredWork {
 public:
  explicit DeviceWindows(SpaceState& space) noexcept : space_(space) {}
  ~DeviceWindows();
  DeviceWindows(const DeviceWindows&) = delete;
  DeviceWindows& operator=(const DeviceWindows&) = delete;

  /// Throws as GlobalSpace::window.
  pgas::DeviceWindow make(std::span<const GlobalPtr<std::byte>> places, std::size_t bytes);
  /// Null: it has no ring, or its ring is gone.
  [[nodiscard]] const WindowProxy* find(const pgas::DeviceWindow& window) const noexcept;
  /// See GlobalSpace::close_window.
  void close(const pgas::DeviceWindow& window) noexcept;
  /// A segment is let go of.
  void close_those_of(std::int32_t rank, std::uint32_t segment) noexcept;
  void look_around() noexcept;
  /// Nothing of any window is under way.
  [[nodiscard]] bool all_over() const noexcept;

 private:
  void* address(std::size_t member, GlobalPtr<std::byte> at, std::size_t bytes);
  /// Frees rings, which lie in memory that the device reaches.
  void run_deferred() noexcept override;

  SpaceState& space_;
  std::vector<std::unique_ptr<WindowProxy>> proxies_;
};

}  // namespace brant
