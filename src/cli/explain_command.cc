#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "bench/runner/options.h"
#include "brant/base/status.h"
#include "brant/core/runtime.h"
#include "cli/commands.h"
#include "cli/explain/collective.h"
#include "cli/explain/report.h"
#include "core/paths/collective_bands.h"

namespace brant::cli {
namespace {

struct ExplainArguments {
  std::string from;
  std::string to;
  std::string bytes;
  std::string path;
  bool other_host = false;
  bool one_process = false;
  bool json = false;
  std::string collective;
  unsigned ranks = 2;
  unsigned hosts = 1;
  explain::CollectiveMemory memory = explain::CollectiveMemory::host;
  explain::CollectiveTrigger trigger = explain::CollectiveTrigger::host;
  std::string way = "automatic";
};

int explain_call(const ExplainArguments& arguments) {
  const BandsInUse measured =
      find_bands(RuntimeOptions::from_environment().calibration, explain::machine_for({}, explain::gather_facts()));
  const explain::CollectiveQuestion asked{.kind = explain::parse_collective(arguments.collective),
                                          .bytes = arguments.bytes.empty() ? 0 : bench::parse_size(arguments.bytes),
                                          .members = arguments.ranks,
                                          .hosts = arguments.hosts,
                                          .memory = arguments.memory,
                                          .trigger = arguments.trigger,
                                          .way = arguments.way,
                                          .bands = measured.bands,
                                          .bands_file = measured.file};
  const explain::CollectiveAnswer answer = explain::explain_collective(asked, arguments.json);
  fmt::print("{}", answer.text);
  return answer.serves ? 0 : 1;
}

int run_explain(const ExplainArguments& arguments) {
  try {
    if (!arguments.collective.empty()) return explain_call(arguments);
    if (arguments.from.empty() || arguments.to.empty() || arguments.bytes.empty())
      throw Error(Status::invalid_argument, "--from, --to and --bytes say which transfer, or --collective which call");
    const RuntimeOptions environment = RuntimeOptions::from_environment();
    explain::Question question;
    question.from = explain::parse_place(arguments.from);
    question.to = explain::parse_place(arguments.to);
    question.bytes = bench::parse_size(arguments.bytes);
    question.forced = environment.path;
    // CLI11 has checked that it is among the known names.
    if (!arguments.path.empty()) static_cast<void>(path_from_name(arguments.path, question.forced));
    question.other_host = arguments.other_host;
    question.one_process = arguments.one_process;
    const explain::Facts facts = explain::gather_facts();
    explain::check_devices(question, facts);
    const explain::Report report = explain::make_report(
        question, facts, find_calibration(environment.calibration, explain::machine_for(question, facts)));
    fmt::print("{}", arguments.json ? explain::to_json(report) + "\n" : explain::to_text(report));
    return report.choice.status == Status::ok ? 0 : 1;
  } catch (const Error& fault) {
    fmt::print(stderr, "brant explain: {}\n", fault.what());
    return fault.status() == Status::invalid_argument ? 2 : 1;
  }
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "explain",
      "Which path a transfer would take on this machine, why, and what the others would cost. Ends with 1 "
      "if a forced path or way cannot serve");
  auto arguments = std::make_shared<ExplainArguments>();
  command->add_option("--from", arguments->from,
                      "Where the bytes are: host (of Runtime::allocate), heap (of malloc), pinned, cuda, cuda:1, "
                      "cuda-managed, emulated");
  command->add_option("--to", arguments->to, "Where they shall be");
  command->add_option("--bytes", arguments->bytes,
                      "Size of the message, for example 8, 64K or 1M; of a collective, of all blocks together");
  CLI::Option* collective = command->add_option(
      "--collective", arguments->collective,
      "Instead of a transfer: how a team carries out a call, for example allreduce or reduce-scatter");
  collective->excludes("--from")->excludes("--to");
  using Memory = explain::CollectiveMemory;
  using Trigger = explain::CollectiveTrigger;
  const std::map<std::string, Memory> memories = {
      {"host", Memory::host}, {"heap", Memory::heap}, {"device", Memory::device}};
  const std::map<std::string, Trigger> triggers = {
      {"host", Trigger::host}, {"stream", Trigger::stream}, {"graph", Trigger::graph}};
  command
      ->add_option("--memory", arguments->memory,
                   "Where the buffers of the call lie: host (of Runtime::allocate, the default), heap (of malloc), or "
                   "device")
      ->transform(CLI::CheckedTransformer(memories))
      ->needs(collective);
  command->add_option("--trigger", arguments->trigger, "Who carries it out: host (the default), stream, or graph")
      ->transform(CLI::CheckedTransformer(triggers))
      ->needs(collective);
  command->add_option("--way", arguments->way, "As if TeamOptions forced this way, or, of streams, this one")
      ->needs(collective);
  command->add_option("--ranks", arguments->ranks, "Members of the team")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str()
      ->needs(collective);
  command->add_option("--hosts", arguments->hosts, "Hosts that they are on")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str()
      ->needs(collective);
  command->add_option("--path", arguments->path, "As if this path were forced (default: BRANT_PATH)")
      ->check(CLI::IsMember(requestable_paths()));
  command->add_flag("--other-host", arguments->other_host, "The two processes are on different hosts");
  command->add_flag("--one-process", arguments->one_process, "Both ends are of one process")->excludes("--other-host");
  command->add_flag("--json", arguments->json, "As one JSON object");
  command->callback([arguments, &exit_code] { exit_code = run_explain(*arguments); });
}

}  // namespace brant::cli
