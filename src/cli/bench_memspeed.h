#pragma once

#include <CLI/CLI.hpp>

namespace brant::cli {

/// `brant bench memspeed`.
void add_bench_memspeed(CLI::App& bench, int& exit_code);

}  // namespace brant::cli
