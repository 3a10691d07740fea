#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "block.h"

namespace jacobi {

/// The parts of one iteration that compute. Within an iteration: pack, then unpack, then whole; or pack, interior
/// beside the exchange, then unpack and shell.
enum class Step { pack, unpack, whole, interior, shell };
inline constexpr int kSteps = 5;

/// Computes on a block: on the CPU, or with kernels on a device. Every step of an iteration must have finished before
/// the next iteration begins. Thread rule: the worker's thread. Errors of the device are thrown as brant::Error.
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
  /// Ends when a started step has; once for each start. The CPU does the work of a sweep in here.
  virtual brant::Task<void> finish(Step step) = 0;
  /// The largest difference between a cell of the next field and the same of the current one. After a sweep.
  virtual brant::Task<double> largest_change() = 0;
};

/// What a sweep still changes: the largest change of a cell of all blocks, in one iteration.
struct Residual {
  std::int64_t iteration = 0;  ///< Its number, from 1 on.
  double value = 0.0;
};

/// The stencil for the block's kind of memory. Runtime and block outlive it.
std::unique_ptr<Stencil> make_stencil(brant::Runtime& runtime, Block& block);
std::unique_ptr<Stencil> make_host_stencil(brant::Runtime& runtime, Block& block);
std::unique_ptr<Stencil> make_device_stencil(brant::Runtime& runtime, Block& block);

/// The blocks of one process: those numbered from `first` on, as many on every process.
struct Share {
  Decomposition cut;
  int first = 0;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<std::unique_ptr<Stencil>> stencils;  ///< Go first: they work on the blocks.
};

}  // namespace jacobi
