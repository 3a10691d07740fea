#pragma once

#include <cstdint>

#include "models/mpi/tools/owned_objects.h"
#include "models/mpi/tools/performance_variables.h"

namespace brant::mpi::tools {

/// What a handle of a performance variable points to: the part of a counter that falls into the times when it was
/// started, whatever other sessions do; or what the variable is now.
class PerformanceHandle {
 public:
  explicit PerformanceHandle(const PerformanceVariable& variable) noexcept : variable_(variable) {}

  /// It always runs, and cannot be written.
  [[nodiscard]] bool is_fixed() const noexcept { return !variable_.is_counter(); }
  [[nodiscard]] std::uint64_t read() const;
  /// Of one that runs already, or stands still, they do nothing.
  void start();
  void stop();
  /// It goes on from there.
  void write(std::uint64_t value);

 private:
  const PerformanceVariable& variable_;
  bool runs_ = false;
  std::uint64_t since_ = 0;     ///< What the counter was then, if it runs.
  std::uint64_t gathered_ = 0;  ///< Before that.
};

/// What a tool watches together.
struct PerformanceSession {
  OwnedObjects<PerformanceHandle> handles;
};

}  // namespace brant::mpi::tools
