#include "bench/interference/rows.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace brant::bench {
namespace {

const char* name_of(Disturbed what) noexcept { return what == Disturbed::send ? "send" : "sweep"; }

const char* name_of(Beside beside) noexcept {
  switch (beside) {
    case Beside::nothing: return "nothing";
    case Beside::sweeps: return "sweeps";
    case Beside::bells: return "bells";
    case Beside::sends: return "sends";
  }
  return "";
}

}  // namespace

std::string interference_header() {
  return fmt::format("{:>8} {:>6} {:<5} {:<6} {:<8} {:>9} {:>9} {:>9} {:>8} {:>6}", "bytes", "blocks", "case", "what",
                     "beside", "min us", "p50 us", "p99 us", "slowdown", "n");
}

std::string interference_line(const InterferenceRow& row) {
  return fmt::format("{:>8} {:>6} {:<5} {:<6} {:<8} {:>9.3f} {:>9.3f} {:>9.3f} {:>8.2f} {:>6}", format_size(row.bytes),
                     row.blocks, interference_case_name(row.which), name_of(row.what), name_of(row.beside), row.us.min,
                     row.us.p50, row.us.p99, row.slowdown(), row.us.n);
}

std::string to_json(const InterferenceRow& row, const Machine& machine) {
  nlohmann::ordered_json json;
  json["bench"] = fmt::format("interference_{}", name_of(row.what));
  json["model"] = "notify";
  json["memory"] = memory_kind_name(row.memory);
  json["trigger"] = row.beside == Beside::nothing ? "host" : "device";
  json["path"] = row.path.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(row.path);
  json["bytes"] = row.bytes;
  json["window"] = 1;
  json["ranks"] = 2;
  json["case"] = interference_case_name(row.which);
  json["grid"] = row.all_blocks ? "all" : "one";
  json["blocks"] = row.blocks;
  json["beside"] = name_of(row.beside);
  json["n"] = row.us.n;
  json["us"] = to_json(row.us);
  json["baseline_us"] = rounded(row.baseline_p50);
  json["slowdown"] = rounded(row.slowdown());
  json["check"] = row.check;
  add_machine(json, "", machine);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace brant::bench
