#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include <fmt/format.h>

#include "bench/runner/self_start.h"
#include "bench/runner/session.h"
#include "cli/calibrate/collectives.h"
#include "cli/calibrate/load.h"
#include "cli/calibrate/measure.h"
#include "cli/calibrate/model.h"
#include "cli/calibrate/table.h"
#include "cli/commands.h"
#include "core/paths/calibration_store.h"
#include "core/paths/calibration_text.h"
#include "core/paths/collective_bands.h"
#include "port/memory/adapters.h"

namespace brant::cli {
namespace {

constexpr int kBusy = 3;  ///< Measured, but not kept.

struct CalibrateArguments {
  std::string output;
  bool dry_run = false;
  bool even_if_busy = false;
  bool model = false;
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

void keep(const Calibration& calibration, std::span<const CollectiveBand> bands, const std::string& file) {
  write_small_file(calibration_text(calibration) + bands_text(bands), file);
  if (find_calibration(RuntimeOptions::from_environment().calibration, calibration.machine).file == file) {
    fmt::print("kept in {}: programs go by it from their next start on\n", file);
  } else {
    fmt::print("kept in {}: programs go by it with BRANT_CALIBRATION={}\n", file, file);
  }
}

/// Keeps what was measured by `keep_it` unless the user or the load of the machine is against it. Gives the exit code.
template <typename Keep>
int finish(const CalibrateArguments& arguments, bool busy, const char* otherwise, Keep&& keep_it) {
  if (arguments.dry_run) return 0;
  if (busy && !arguments.even_if_busy) {
    fmt::print("not kept: {}. --even-if-busy keeps it all the same\n", otherwise);
    return kBusy;
  }
  keep_it();
  return 0;
}

int calibrate_paths(const CalibrateArguments& arguments, const std::string& file) {
  bench::Session session(runtime_options(), "calibrate");
  int exit_code = 0;
  const calibrate::Findings findings = calibrate::measure_paths(session);
  const calibrate::LoadWatch load(session.ranks());
  const calibrate::CollectiveFindings collectives =
      calibrate::measure_collectives(session, arguments.even_if_busy || !findings.busy);
  if (session.reports()) {
    const std::string complaint = load.complaint();
    fmt::print("{}{}", calibrate::to_text(findings),
               calibrate::to_text(collectives, static_cast<unsigned>(session.ranks())));
    if (!complaint.empty()) fmt::print("collectives: {}\n", complaint);
    exit_code = finish(arguments, findings.busy || !complaint.empty(), "programs go on as before",
                       [&] { keep(findings.calibration, collectives.bands, file); });
  }
  session.barrier();
  return exit_code;
}

int calibrate_model(const CalibrateArguments& arguments, const std::string& file) {
  bench::Session session(runtime_options(), "calibrate --model", calibrate::kModelRanksMax);
  int exit_code = 0;
  const calibrate::ModelFindings findings = calibrate::measure_model(session);
  if (session.reports()) {
    fmt::print("{}", calibrate::to_text(findings.parameters));
    std::fflush(stdout);
    if (findings.parameters.paths.empty() && !arguments.dry_run)
      throw Error(Status::not_supported, "not kept: no path is described by the models, for the reasons above");
    exit_code = finish(arguments, findings.busy, "what was kept before stays", [&] {
      write_small_file(bench::model::to_json(findings.parameters), file);
      fmt::print("kept in {}: `brant bench halo --model` goes by it\n", file);
    });
  }
  session.barrier();
  return exit_code;
}

int run_calibrate(const CalibrateArguments& arguments) {
  try {
    const std::string by_default = arguments.model ? model_file() : calibration_file();
    const std::string file = arguments.output.empty() ? by_default : arguments.output;
    if (file.empty() && !arguments.dry_run) {
      throw Error(Status::invalid_argument,
                  "there is no cache folder to keep it in: set XDG_CACHE_HOME or HOME, or give --output FILE");
    }
    if (bench::started_alone()) bench::restart_as_job(2);
    return arguments.model ? calibrate_model(arguments, file) : calibrate_paths(arguments, file);
  } catch (const Error& fault) {
    bench::wait_to_be_ended();
    fmt::print(stderr, "brant calibrate: {}\n", fault.what());
    return fault.status() == Status::invalid_argument ? 2 : 1;
  }
}

}  // namespace

void add_calibrate(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("calibrate",
                                         "Measure what each path costs on this machine, and where collectives change "
                                         "from one way to another, some seconds, "
                                         "and keep it for the choices of both. "
                                         "Starts itself on 2 processes when nobody else did");
  auto arguments = std::make_shared<CalibrateArguments>();
  command->add_option("--output", arguments->output,
                      "Keep it in this file (default: one per machine, in the cache folder)");
  command->add_flag("--dry-run", arguments->dry_run, "Measure and print only");
  command->add_flag("--even-if-busy", arguments->even_if_busy,
                    "Keep it although others used the machine meanwhile (else it ends with 3 and keeps nothing)");
  command->add_flag("--model", arguments->model,
                    "Fit the postal, the max-rate and the LogGP model to what paths, floods, copies and rings cost, "
                    "and keep those parameters instead, as JSON. In jobs of 4 or more processes also of several pairs "
                    "at once");
  command->callback([arguments, &exit_code] { exit_code = run_calibrate(*arguments); });
}

}  // namespace brant::cli
