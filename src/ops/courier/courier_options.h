#pragma once

#include <cstddef>
#include <cstdint>

#include "brant/base/buffer.h"

namespace brant {

/// Which fences the courier's kernel pays for.
enum class CourierFences : std::uint8_t {
  automatic,  ///< `measured` on the architectures where that was done, `by_model` on all others.
  by_model,   ///< All that PTX's memory model asks for.
  measured,   ///< Without those that changed nothing but the time where it was measured (docs/decisions/0010).
};

/// How much of a GPU a courier may take, and for how long. The defaults suit a GPU of the H200's class.
struct CourierOptions {
  bool enabled = true;
  /// Most blocks, so most SMs, it holds while it is resident: one for orders up to `part_bytes`, twice as many for
  /// twice the size, and so on.
  unsigned blocks = 16;
  unsigned warps = 16;  ///< Copying warps of a block, 1 to 16; the dispatchers' come on top.
  /// Warps that look for orders, 1 to 4. A look takes a trip over the bus and back; of several, one is sooner there.
  unsigned dispatchers = 4;
  /// It leaves so long after its last order,
  double idle_us = 50;
  /// and so long after its start in any case: what a cudaDeviceSynchronize or cudaFree of the program waits at most.
  double lease_us = 1000;
  std::size_t bytes_max = std::size_t{4} << 20;  ///< Larger orders are not taken: the copy engine does them better.
  std::size_t alone_bytes = 8192;                ///< A single order up to this size needs no group.
  std::size_t part_bytes = 16384;                ///< A single order is split over groups in parts no smaller.
  unsigned look_idle = 1;                        ///< Orders read by one look at the ring while none came,
  unsigned look_busy = 16;                       ///< and while they come.
  CourierFences fences = CourierFences::automatic;

  /// The largest order it would be given; 0: it is switched off.
  [[nodiscard]] std::size_t largest() const noexcept { return enabled ? bytes_max : 0; }
  /// Whether a device of this architecture (`DeviceCapabilities`) gets every fence of the memory model.
  [[nodiscard]] bool fences_by_model(int architecture) const noexcept;

  /// For a device whose own memory is of this kind; an emulated one's would take a CPU from the program: there only on
  /// demand (BRANT_COURIER=1). The defaults, changed by BRANT_COURIER (off), BRANT_COURIER_BLOCKS,
  /// BRANT_COURIER_IDLE_US, BRANT_COURIER_LEASE_US, BRANT_COURIER_FENCES (auto, model, measured). A value that is no
  /// number, out of range or none of these words is ignored with a line in the log.
  static CourierOptions from_environment(MemoryKind device) noexcept;
};

}  // namespace brant
