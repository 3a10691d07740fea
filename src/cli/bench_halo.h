#pragma once

#include <CLI/CLI.hpp>

namespace brant::cli {

/// `brant bench halo`.
void add_bench_halo(CLI::App& bench, int& exit_code);

}  // namespace brant::cli
