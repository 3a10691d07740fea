#pragma once

#include <CLI/CLI.hpp>

namespace brant::cli {

/// `brant bench kernel-puts`.
void add_bench_kernel_puts(CLI::App& bench, int& exit_code);

}  // namespace brant::cli
