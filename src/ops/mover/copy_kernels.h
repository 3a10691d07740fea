#pragma once

#include <cstddef>

#include "ops/mover/copy_orders.h"
#include "ops/mover/shaped_order.h"
#include "port/memory.h"

namespace brant {

/// The kernels that copy, where the device has any. The mover's, for its copiers.
class CopyKernels {
 public:
  explicit CopyKernels(port::Device& device) noexcept : device_(device) {}

  /// Loads them, unless that was done: call it before kernels run that end late.
  void open() noexcept;
  [[nodiscard]] bool take_orders() const noexcept { return orders_ != nullptr; }
  [[nodiscard]] bool take_shapes() const noexcept { return shaped_ != nullptr; }
  /// The first `count` of them, of which the largest has so many bytes.
  Status launch(CopyOrders& orders, unsigned count, std::size_t largest, port::Stream* stream) noexcept;
  Status launch(ShapedOrder& order, port::Stream* stream) noexcept;

 private:
  port::Device& device_;
  port::Kernel* orders_ = nullptr;
  port::Kernel* shaped_ = nullptr;
  bool opened_ = false;
};

}  // namespace brant
