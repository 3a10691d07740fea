#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/runner/options.h"
#include "cli/explain/report.h"

namespace brant::cli::explain {
namespace {

using Json = nlohmann::ordered_json;

/// 1e9 bytes a second.
double gb_s(std::size_t bytes, double us) noexcept { return static_cast<double>(bytes) / us / 1e3; }

std::string versions(const CalibratedMachine& machine) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name, value);
  };
  add("", machine.host);
  add("brant ", machine.brant);
  add("UCX ", machine.ucx);
  add("", machine.cuda);
  return text;
}

std::string verdict_text(const PathVerdict& verdict, const Report& report, std::optional<double> chosen_us) {
  if (verdict.path == report.choice.path) return report.choice.status == Status::ok ? "taken" : "forced, but refused";
  if (verdict.refusal != nullptr) return fmt::format("refused: {}", verdict.refusal);
  if (!verdict.us) return "could serve; no figure";
  if (!chosen_us) return "could serve";
  return fmt::format("could serve, {:.2f}x the time", *verdict.us / *chosen_us);
}

std::string where_from(const Report& report) {
  const CalibrationInUse& numbers = report.numbers;
  const std::string what = versions(numbers.calibration.machine);
  if (numbers.measured) return fmt::format("{}{}", numbers.file, what.empty() ? "" : " (" + what + ")");
  return fmt::format("built in ({}); `brant calibrate` measures this machine", what);
}

const char* where(const Question& question) noexcept {
  if (question.one_process) return "within one process";
  return question.other_host ? "between two hosts" : "within one host";
}

Json optional_number(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

}  // namespace

std::string to_text(const Report& report) {
  const Question& question = report.question;
  const std::optional<double> us = report.predicted_us();
  std::string text = fmt::format(
      "{} bytes from {} to {}, {}{}\n", bench::format_size(question.bytes), place_name(question.from),
      place_name(question.to), where(question),
      question.forced == Path::automatic ? "" : fmt::format(", path {} forced", path_name(question.forced)));
  text += fmt::format("path     {}: {}{}\n", path_name(report.choice.path),
                      report.choice.status == Status::ok ? "" : "refused, ", report.choice.reason);
  text += us ? fmt::format("time     {:.4g} us one way, predicted\n", *us) : "time     no figure\n";
  text += fmt::format("numbers  {}\n", where_from(report));
  if (!report.numbers.refused.empty()) text += fmt::format("warning  {}\n", report.numbers.refused);
  for (const std::string& note : report.notes) text += fmt::format("note     {}\n", note);
  text += fmt::format("\n{:<12} {:>9} {:>9}  {}\n", "path", "us", "GB/s", "verdict");
  for (const PathVerdict& verdict : report.paths) {
    text += fmt::format(
        "{:<12} {:>9} {:>9}  {}\n", path_name(verdict.path), verdict.us ? fmt::format("{:.4g}", *verdict.us) : "-",
        verdict.us ? fmt::format("{:.3g}", gb_s(question.bytes, *verdict.us)) : "-", verdict_text(verdict, report, us));
  }
  return text;
}

std::string to_json(const Report& report) {
  const Question& question = report.question;
  const CalibratedMachine& machine = report.numbers.calibration.machine;
  Json json;
  json["from"] = place_name(question.from);
  json["to"] = place_name(question.to);
  json["bytes"] = question.bytes;
  json["other_host"] = question.other_host;
  json["one_process"] = question.one_process;
  json["forced"] = question.forced == Path::automatic ? Json() : Json(path_name(question.forced));
  json["path"] = path_name(report.choice.path);
  json["serves"] = report.choice.status == Status::ok;
  json["reason"] = report.choice.reason;
  json["us"] = optional_number(report.predicted_us());
  json["paths"] = Json::array();
  for (const PathVerdict& verdict : report.paths) {
    json["paths"].push_back({{"path", path_name(verdict.path)},
                             {"us", optional_number(verdict.us)},
                             {"refusal", verdict.refusal == nullptr ? Json() : Json(verdict.refusal)}});
  }
  json["numbers"] = {{"measured", report.numbers.measured},
                     {"file", report.numbers.file.empty() ? Json() : Json(report.numbers.file)},
                     {"refused", report.numbers.refused.empty() ? Json() : Json(report.numbers.refused)},
                     {"host", machine.host},
                     {"brant", machine.brant},
                     {"ucx", machine.ucx},
                     {"cuda", machine.cuda},
                     {"gpus", machine.gpus}};
  json["notes"] = report.notes;
  return json.dump(2);
}

}  // namespace brant::cli::explain
