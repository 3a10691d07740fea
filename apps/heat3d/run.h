#pragma once

#include <vector>

#include "block.h"
#include "options.h"

namespace heat {

/// What came out of the steps in one mode, at this process.
struct Outcome {
  Mode mode = Mode::one_sided;
  Extent blocks;
  brant::MemoryKind memory = brant::MemoryKind::host;
  std::vector<double> steps_us;    ///< The time of each step that counts.
  double average = 0.0;            ///< Temperature behind the last step, of the whole body.
  std::size_t sent_bytes = 0;      ///< In a step.
  std::vector<double> path_bytes;  ///< In all steps, by path.
};

/// All of the job: one run for each mode, what is printed, checked, written. Collective. Rank 0 alone prints and
/// writes. Throws what failed: what every process finds out on all, what one can find out there, and peer_lost on the
/// others once it has gone.
void run_job(brant::Runtime& runtime, const Options& options);

/// What the cells of a box hold before step 0: zero, or, to be checked, noise by the place in the whole body.
std::vector<double> first_temperatures(const Box& box, bool noise);
/// P, until half of the steps are done.
double power_in(const Body& body, const Options& options, std::int64_t step) noexcept;

/// Throws limit_reached for what is too much to be solved on one process too.
void require_checkable(const Options& options);
/// Collective: compares the fields behind the last step with a serial run, on rank 0. Throws internal, naming the first
/// cell that differs.
void check(brant::GlobalSpace& space, brant::Team& team, const Block& block, const Options& options);

}  // namespace heat
