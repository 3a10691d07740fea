#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "brant/pgas.h"
#include "support/in_process_job.h"

namespace brant::test {

/// A job in this process with a global space for each of its ranks.
class Spaces {
 public:
  explicit Spaces(const JobOptions& options) : job_(options) {
    for (int rank = 0; rank < options.ranks; ++rank) spaces_.push_back(std::make_unique<GlobalSpace>(job_.rank(rank)));
  }
  /// They end together, as those of processes do: each lets go of the others' segments first.
  ~Spaces() {
    for (std::size_t i = 0; i < segments_.size(); ++i) segments_[i] = {};
    job_.run(200);
    // Ranks above 0 copy; what is still under way ends by their progress, which they make in their ends alone.
    while (!spaces_.empty()) spaces_.pop_back();
  }
  GlobalSpace& operator[](int rank) { return *spaces_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] InProcessJob& job() { return job_; }

  /// A segment that lives as long as the spaces.
  GlobalSegment& keep(GlobalSegment segment) {
    segments_.push_back(std::move(segment));
    return segments_.back();
  }
  OpResult outcome(const Operation& operation) { return job_.outcome(operation); }

 private:
  InProcessJob job_;
  std::vector<std::unique_ptr<GlobalSpace>> spaces_;
  std::deque<GlobalSegment> segments_;
};

}  // namespace brant::test
