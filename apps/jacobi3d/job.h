#pragma once

#include <memory>
#include <string>

#include "options.h"
#include "report.h"

namespace jacobi {

/// What one process does: sets up, runs, checks, tells. Collective; `run` may be called several times with different
/// options.
///
/// Throws AgreedError for what all processes found out together (bad input, no memory, a failed check), other
/// exceptions for what happened to this process alone (a lost peer, a failed device).
class Job {
 public:
  /// One job for each runtime: a second one would use the channels of the first again.
  Job(brant::Runtime& runtime, Star& star) noexcept : runtime_(runtime), star_(star) {}

  void run(const Options& options);
  /// A checked run of a small problem, then a comparison of a large one.
  void demo(const Options& options);

 private:
  struct Problem;

  std::unique_ptr<Problem> prepare(const Options& options);
  RunReport measure(Problem& problem, brant::Path path);
  RunReport measure_chares(Problem& problem, brant::Path path);
  RunReport report_of(const Problem& problem, const brant::PathUse& before, Timing timing, double residual,
                      double halo_bytes);
  PathBytes bytes_since(const brant::PathUse& before);
  void check(Problem& problem, const RunReport& report, const std::string& name);
  void say(const std::string& text) const;

  brant::Runtime& runtime_;
  Star& star_;
  std::uint32_t generation_ = 0;  ///< Of halo exchanges: each gets channels of its own.
};

}  // namespace jacobi
