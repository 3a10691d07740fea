#pragma once

#include <CLI/CLI.hpp>

namespace brant::cli {

/// `brant bench notify`.
void add_bench_notify(CLI::App& bench, int& exit_code);

}  // namespace brant::cli
