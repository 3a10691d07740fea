#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "halo.h"
#include "star.h"
#include "stencil.h"

namespace jacobi {

struct SolverOptions {
  std::int64_t iterations = 100;
  std::int64_t warmup = 10;         ///< Iterations before the clock starts; they count for the field.
  std::int64_t residual_every = 0;  ///< 0: only after the last iteration. Its time is not measured.
  bool overlap = false;             ///< Compute the interior while the faces travel.
  std::function<void(std::int64_t done)>
      on_iteration;  ///< Called after each iteration, may be empty. Its time is not measured.
};

/// Times of one iteration in microseconds, means over iterations and processes.
struct Timing {
  double iteration = 0.0;
  double compute = 0.0;        ///< The sweep. With overlap, from its start to its end, beside the exchange.
  double communication = 0.0;  ///< Posting the receives, and from packing to the end of unpacking.
  std::vector<float> samples;  ///< This process's iterations, at most kSamplesMax.
};
inline constexpr std::size_t kSamplesMax = 1'000'000;

struct Solution {
  Timing timing;
  double residual = 0.0;  ///< Largest change of a cell in the last iteration, over all processes.
};

/// Iterates. Collective. Throws what the device or the network failed with.
class Solver {
 public:
  Solver(brant::Runtime& runtime, Star& star, Block& block, Stencil& stencil, HaloExchange& halo) noexcept
      : runtime_(runtime), star_(star), block_(block), stencil_(stencil), halo_(halo) {}

  Solution run(const SolverOptions& options);

 private:
  struct Iteration {
    double total = 0.0;
    double compute = 0.0;
    double communication = 0.0;
  };

  /// The receives of this iteration are posted; those of the next will be unless it is the last.
  Iteration iterate(bool overlap, bool is_last);
  void exchange(bool overlap);
  void finish(Step step);

  brant::Runtime& runtime_;
  Star& star_;
  Block& block_;
  Stencil& stencil_;
  HaloExchange& halo_;
};

}  // namespace jacobi
