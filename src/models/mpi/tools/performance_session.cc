#include "models/mpi/tools/performance_session.h"

namespace brant::mpi::tools {

std::uint64_t PerformanceHandle::read() const {
  if (is_fixed()) return variable_.now();
  return gathered_ + (runs_ ? variable_.now() - since_ : 0);
}

void PerformanceHandle::start() {
  if (runs_) return;
  since_ = variable_.now();
  runs_ = true;
}

void PerformanceHandle::stop() {
  gathered_ = read();
  runs_ = false;
}

void PerformanceHandle::write(std::uint64_t value) {
  gathered_ = value;
  since_ = variable_.now();
}

}  // namespace brant::mpi::tools
