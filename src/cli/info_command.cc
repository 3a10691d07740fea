#include <memory>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/info/report.h"

namespace brant::cli {

void add_info(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("info", "What was found on this machine: UCX, GPUs, memory kinds, paths, versions");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "As one JSON object");
  command->callback([json, &exit_code] {
    const info::Report report = info::make_report();
    fmt::print("{}", *json ? info::to_json(report) + "\n" : info::to_text(report));
    exit_code = 0;
  });
}

}  // namespace brant::cli
