#pragma once

#include <memory>

#include "block.h"

namespace jacobi {

/// The parts of one iteration that compute. Within an iteration: pack, then unpack, then whole; or pack, interior
/// beside the exchange, then unpack and shell.
enum class Step { pack, unpack, whole, interior, shell };
inline constexpr int kSteps = 5;

/// Which form of the sweep a GPU runs; there are two to measure against each other.
enum class SweepKernel { pairs, plain };

/// Computes on a block: on the CPU, or with kernels on a device.
///
/// A step is started and then asked for until it has finished. Every step of an iteration must have finished before the
/// next begins. Thread rule: the worker's thread. Errors of the device are thrown as brant::Error.
class Stencil {
 public:
  Stencil() = default;
  Stencil(const Stencil&) = delete;
  Stencil& operator=(const Stencil&) = delete;
  virtual ~Stencil() = default;

  /// Start values into both fields. Waits.
  virtual void fill() = 0;

  /// Starts a step: on a device it is queued after the pack, unpack, whole and shell steps started before it;
  /// `interior` runs beside them.
  virtual void start(Step step) = 0;
  /// True once a started step is done. The CPU does a slice of the work in here, so that the caller can look after the
  /// network in between.
  virtual bool finished(Step step) = 0;

  /// The largest change of a cell between the two fields, after a swap. Waits.
  virtual double largest_change() = 0;

  /// Bytes per second, read plus written, of copying the current field over the next one with the best copy there is.
  /// Waits.
  virtual double copy_bandwidth() = 0;
};

/// The stencil for the block's kind of memory. The block outlives it.
std::unique_ptr<Stencil> make_stencil(brant::Runtime& runtime, Block& block, SweepKernel kernel);

std::unique_ptr<Stencil> make_host_stencil(Block& block);
std::unique_ptr<Stencil> make_device_stencil(brant::Runtime& runtime, Block& block, SweepKernel kernel);

}  // namespace jacobi
