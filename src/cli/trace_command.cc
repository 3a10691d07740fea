#include <memory>
#include <string>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/trace/summary.h"

namespace brant::cli {
namespace {

struct SummaryArguments {
  std::string file;
  std::size_t entries = 20;
};

}  // namespace

void add_trace(CLI::App& app, int& exit_code) {
  CLI::App* trace = app.add_subcommand(
      "trace", "Look at what BRANT_TRACE=FILE wrote (open the file itself at https://ui.perfetto.dev)");
  trace->require_subcommand(1);
  auto arguments = std::make_shared<SummaryArguments>();
  CLI::App* summary =
      trace->add_subcommand("summary", "How busy each rank was, the heaviest entries, what went over which path");
  summary->add_option("file", arguments->file, "The trace")->required();
  summary->add_option("--entries", arguments->entries, "How many entries to list")->capture_default_str();
  summary->callback([arguments, &exit_code] {
    fmt::print("{}", trace::to_text(trace::summarize_trace(arguments->file), arguments->entries));
    exit_code = 0;
  });
}

}  // namespace brant::cli
