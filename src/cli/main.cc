#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/info/version.h"

namespace {

/// What was printed may still lie in the stream: a full disk must not look like success.
int after_output(int exit_code) {
  const bool failed = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed) return exit_code;
  fmt::print(stderr, "brant: standard output could not be written{}{}: what was printed is not complete\n",
             errno != 0 ? ": " : "", errno != 0 ? std::strerror(errno) : "");
  return exit_code != 0 ? exit_code : 1;
}

/// The launchers of other MPIs are called with -np.
void take_np_as_n(int argc, char** argv) {
  static char n[] = "-n";
  if (argc > 2 && std::strcmp(argv[1], "run") == 0 && std::strcmp(argv[2], "-np") == 0) argv[2] = n;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kUsageError = 2;
  int exit_code = 0;
  CLI::App app("GPU-direct communication under every programming model: start programs, look at the machine, measure.",
               "brant");
  app.set_version_flag("--version", "brant " + brant::cli::info::build_version());
  app.require_subcommand(0, 1);  // none is asked for help, an unknown one is named
  try {
    brant::cli::add_bench(app, exit_code);
    brant::cli::add_calibrate(app, exit_code);
    brant::cli::add_doctor(app, exit_code);
    brant::cli::add_explain(app, exit_code);
    brant::cli::add_info(app, exit_code);
    brant::cli::add_run(app, exit_code);
    brant::cli::add_run_spawned(app, exit_code);
    brant::cli::add_trace(app, exit_code);
    take_np_as_n(argc, argv);
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) {
      fmt::print(stderr, "{}", app.help());
      return kUsageError;
    }
    return after_output(exit_code);
  } catch (const CLI::ExtrasError& fault) {
    if (!app.get_subcommands().empty()) return app.exit(fault) == 0 ? 0 : kUsageError;
    fmt::print(stderr, "brant: there is no command '{}': `brant --help` lists them\n", argv[1]);
    return kUsageError;
  } catch (const CLI::ParseError& fault) {
    // --help and --version arrive here too, with code 0.
    return after_output(app.exit(fault) == 0 ? 0 : kUsageError);
  } catch (const std::exception& fault) {
    fmt::print(stderr, "brant: {}\n", fault.what());
    return 1;
  }
}
