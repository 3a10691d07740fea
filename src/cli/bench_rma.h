#pragma once

#include <CLI/CLI.hpp>

namespace brant::cli {

/// `brant bench rma`.
void add_bench_rma(CLI::App& bench, int& exit_code);

}  // namespace brant::cli
