#pragma once

#include <memory>
#include <span>

#include "block.h"

namespace heat {

/// The parts of a step that compute. `inner` needs no ghosts and may run beside the exchange, `surface` needs them.
enum class Part { pack, inner, surface };

/// Computes on a block: on the CPU, or by kernels of a device. Thread rule: the worker's thread. Errors of the device
/// are thrown as brant::Error.
class Computer {
 public:
  Computer() = default;
  Computer(const Computer&) = delete;
  Computer& operator=(const Computer&) = delete;
  virtual ~Computer() = default;

  /// The temperatures before step 0. Waits.
  virtual void begin(std::span<const double> temperatures) = 0;
  /// Starts a part of a step, with so much power coming in.
  virtual void start(Part part, std::int64_t step, double power) = 0;
  /// Returns when what was started has ended, having moved the network meanwhile. The CPU does its work in here.
  virtual void finish(Part part) = 0;
  /// Whether that work is this thread's: then it comes before the wait for ghosts.
  [[nodiscard]] virtual bool works_here() const noexcept = 0;
  /// The sum of all temperatures before a step. Waits.
  virtual double sum(std::int64_t step) = 0;
};

/// For the block's kind of memory. Runtime and block outlive it.
std::unique_ptr<Computer> make_computer(brant::Runtime& runtime, const Block& block);
std::unique_ptr<Computer> make_host_computer(brant::Runtime& runtime, const Block& block);
std::unique_ptr<Computer> make_device_computer(brant::Runtime& runtime, const Block& block);

}  // namespace heat
