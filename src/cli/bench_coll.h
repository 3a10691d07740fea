#pragma once

#include <CLI/CLI.hpp>

namespace brant::cli {

/// `brant bench allreduce`, `broadcast`, `allgather`, `reduce-scatter`, `alltoall`, `barrier`.
void add_bench_coll(CLI::App& bench, int& exit_code);

}  // namespace brant::cli
