#pragma once

#include <cstdint>

#include "brant/ops/rma.h"
#include "core/engine.h"
#include "support/grounds.h"
#include "support/in_process_job.h"

/// A segment of rank 0 and what rank 1 does with it.
namespace brant::test {

inline std::uint64_t puts(InProcessJob& job, int rank, Path path) {
  return job.rank(rank).worker().engine().counters().path(path).sends.read();
}
inline std::uint64_t gets(InProcessJob& job, int rank, Path path) {
  return job.rank(rank).worker().engine().counters().path(path).receives.read();
}

}  // namespace brant::test
