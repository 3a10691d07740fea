#pragma once

#include <chrono>
#include <cstdint>

namespace jacobi {

/// Shows on a terminal (standard error) how far a long run is: nothing in the first two seconds, nothing where nobody
/// looks. Cheap enough to be called after every iteration.
class ProgressBar {
 public:
  /// `shown` is false on all processes but one.
  ProgressBar(std::int64_t total, bool shown);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// Wipes the line.
  ~ProgressBar();

  void update(std::int64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  std::int64_t total_;
  bool shown_;
  bool drawn_ = false;
  Clock::time_point begin_;
  Clock::time_point next_;
};

}  // namespace jacobi
