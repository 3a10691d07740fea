#pragma once

#include <cstdio>

#include <fmt/format.h>

#include "bench/runner/self_start.h"
#include "brant/base/status.h"

namespace brant::cli {

/// Runs one benchmark; what it throws is reported once for the job, by the name of its command. Gives the exit code.
template <typename Run>
int run_benchmark(const char* command, Run&& run) {
  try {
    run();
    return 0;
  } catch (const Error& fault) {
    bench::wait_to_be_ended();
    fmt::print(stderr, "{}: {}\n", command, fault.what());
    return fault.status() == Status::invalid_argument ? 2 : 1;
  }
}

}  // namespace brant::cli
