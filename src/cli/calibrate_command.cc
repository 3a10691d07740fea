#include <cstdio>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "bench/runner/self_start.h"
#include "bench/runner/session.h"
#include "cli/calibrate/measure.h"
#include "cli/calibrate/table.h"
#include "cli/commands.h"
#include "core/paths/calibration_store.h"
#include "port/memory/adapters.h"

namespace brant::cli {
namespace {

constexpr int kBusy = 3;  ///< Measured, but not kept.

struct CalibrateArguments {
  std::string output;
  bool dry_run = false;
  bool even_if_busy = false;
};

RuntimeOptions runtime_options() {
  RuntimeOptions options = RuntimeOptions::from_environment();
  options.path = Path::automatic;  // each is forced in its turn
  options.calibration.clear();     // the old one, which may be broken
  // One GPU for two processes would measure time slicing.
  const bool lone = options.gpu == GpuChoice::automatic && !options.share_gpu;
  if (lone && port::memory::probe_cuda().devices.size() == 1) options.gpu = GpuChoice::none;
  return options;
}

void keep(const Calibration& calibration, const std::string& file) {
  write_calibration(calibration, file);
  if (find_calibration(RuntimeOptions::from_environment().calibration, calibration.machine).file == file) {
    fmt::print("kept in {}: programs go by it from their next start on\n", file);
  } else {
    fmt::print("kept in {}: programs go by it with BRANT_CALIBRATION={}\n", file, file);
  }
}

int run_calibrate(const CalibrateArguments& arguments) {
  try {
    const std::string file = arguments.output.empty() ? calibration_file() : arguments.output;
    if (file.empty() && !arguments.dry_run) {
      throw Error(Status::invalid_argument,
                  "there is no cache folder to keep it in: set XDG_CACHE_HOME or HOME, or give --output FILE");
    }
    if (bench::started_alone()) bench::restart_as_job(2);
    bench::Session session(runtime_options(), "calibrate");
    int exit_code = 0;
    const calibrate::Findings findings = calibrate::measure_paths(session);
    if (session.reports()) {
      fmt::print("{}", calibrate::to_text(findings));
      const bool doubtful = findings.busy && !arguments.even_if_busy;
      if (!arguments.dry_run && doubtful) {
        fmt::print("not kept: programs go on as before. --even-if-busy keeps it all the same\n");
        exit_code = kBusy;
      } else if (!arguments.dry_run) {
        keep(findings.calibration, file);
      }
    }
    session.barrier();
    return exit_code;
  } catch (const Error& fault) {
    bench::wait_to_be_ended();
    fmt::print(stderr, "brant calibrate: {}\n", fault.what());
    return fault.status() == Status::invalid_argument ? 2 : 1;
  }
}

}  // namespace

void add_calibrate(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "calibrate",
      "Measure what each path costs on this machine, some seconds, and keep it for the choice of paths. "
      "Starts itself on 2 processes when nobody else did");
  auto arguments = std::make_shared<CalibrateArguments>();
  command->add_option("--output", arguments->output,
                      "Keep it in this file (default: one per machine, in the cache folder)");
  command->add_flag("--dry-run", arguments->dry_run, "Measure and print only");
  command->add_flag("--even-if-busy", arguments->even_if_busy,
                    "Keep it although others used the machine meanwhile (else it ends with 3 and keeps nothing)");
  command->callback([arguments, &exit_code] { exit_code = run_calibrate(*arguments); });
}

}  // namespace brant::cli
