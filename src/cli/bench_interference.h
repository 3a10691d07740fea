#pragma once

#include <CLI/CLI.hpp>

namespace brant::cli {

/// `brant bench interference`.
void add_bench_interference(CLI::App& bench, int& exit_code);

}  // namespace brant::cli
