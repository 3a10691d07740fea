#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/doctor/checks.h"
#include "cli/doctor/self_test.h"

namespace brant::cli {
namespace {

using doctor::Finding;
using doctor::Level;

struct DoctorArguments {
  bool quick = false;
  bool json = false;
};

/// Further lines stand below the first.
std::string indented(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result.append(31, ' ');
  }
  return result;
}

void print_text(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    fmt::print("{:<8} {:<21} {}\n", doctor::level_name(finding.level), finding.name, indented(finding.what));
    if (!finding.cure.empty()) fmt::print("{:<8} {:<21} cure: {}\n", "", "", finding.cure);
  }
}

void print_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    json.push_back({{"level", doctor::level_name(finding.level)},
                    {"name", finding.name},
                    {"what", finding.what},
                    {"cure", finding.cure}});
  }
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::string counted(std::ptrdiff_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

int run_doctor(const DoctorArguments& arguments) {
  const doctor::Facts facts = doctor::gather_facts();
  std::vector<Finding> findings = doctor::run_checks(facts);
  if (!arguments.json) print_text(findings);
  if (!arguments.quick) {
    std::fflush(stdout);
    const std::vector<Finding> tried = doctor::run_self_tests(facts);
    if (!arguments.json) print_text(tried);
    findings.insert(findings.end(), tried.begin(), tried.end());
  }
  if (arguments.json) print_json(findings);
  const auto count = [&](Level level) {
    return std::count_if(findings.begin(), findings.end(),
                         [level](const Finding& each) { return each.level == level; });
  };
  const auto problems = count(Level::problem);
  if (!arguments.json) {
    fmt::print("{} ok, {}, {}\n", count(Level::ok), counted(count(Level::warning), "warning"),
               counted(problems, "problem"));
  }
  return problems == 0 ? 0 : 1;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* command =
      app.add_subcommand("doctor", "What is wrong on this machine, and the cure. Exit code 1 if there is a problem");
  command->add_flag("--quick", arguments->quick, "Leave out the exchange between two processes");
  command->add_flag("--json", arguments->json, "As a JSON array");
  command->callback([arguments, &exit_code] { exit_code = run_doctor(*arguments); });
}

}  // namespace brant::cli
