#pragma once

#include <CLI/CLI.hpp>

/// The subcommands of `brant`, one file each. `add_x` describes the options to `app`; when the user chose the
/// subcommand, its callback does the work and leaves the exit code in `exit_code`, which lives until the end of main().
namespace brant::cli {

void add_bench(CLI::App& app, int& exit_code);
void add_calibrate(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_info(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
/// Not for people: what `brant run` and programs start for MPI_Comm_spawn.
void add_run_spawned(CLI::App& app, int& exit_code);
void add_trace(CLI::App& app, int& exit_code);

}  // namespace brant::cli
