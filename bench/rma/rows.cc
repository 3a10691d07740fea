#include "bench/rma/rows.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/runner/row.h"
#include "bench/runner/table.h"

namespace brant::bench {
namespace {

std::string target_of(const RmaRow& row) {
  if (!row.busy_target) return "idle";
  if (!row.waited) return "busy: ?";
  return *row.waited ? "busy: waited" : "busy";
}

}  // namespace

double RmaRow::rate() const noexcept {
  const double count = which.sync == RmaSync::inject ? 1 : static_cast<double>(which.window);
  return us.p50 > 0 ? count / us.p50 : 0;
}

std::optional<double> RmaRow::gb_s() const noexcept {
  if (which.sync == RmaSync::inject) return std::nullopt;
  return rate() * static_cast<double>(which.bytes) / 1e3;
}

std::string rma_header() {
  return fmt::format("{:>8} {:<4} {:<7} {:<6} {:>9} {:>9} {:>9} {:>9} {:>9}  {:<12} {:<11} {:<17} {:>6}", "bytes", "op",
                     "pattern", "sync", "min us", "p50 us", "p99 us", "GB/s", "M/s", "target", "path", "by", "n");
}

std::string rma_line(const RmaRow& row) {
  const std::optional<double> gb_s = row.gb_s();
  const std::string by = row.peer.empty() ? "brant" : row.peer_version.empty() ? row.peer : row.peer_version;
  return fmt::format("{:>8} {:<4} {:<7} {:<6} {:>9} {:>9} {:>9} {:>9} {:>9}  {:<12} {:<11} {:<17} {:>6}",
                     format_size(row.which.bytes), direction_name(row.which.direction), pattern_name(row.which.pattern),
                     sync_name(row.which.sync), figure(row.us.min), figure(row.us.p50), figure(row.us.p99),
                     gb_s ? figure(*gb_s) : "-", figure(row.rate()), target_of(row), row.path, by, row.us.n);
}

std::string to_json(const RmaRow& row, const Machine& machine) {
  nlohmann::ordered_json json;
  json["bench"] = "rma";
  json["model"] = direction_name(row.which.direction);
  json["pattern"] = pattern_name(row.which.pattern);
  json["sync"] = sync_name(row.which.sync);
  json["memory"] = memory_kind_name(row.local);
  json["remote_memory"] = memory_kind_name(row.remote);
  json["trigger"] = "host";
  json["path"] = row.path;
  json["bytes"] = row.which.bytes;
  json["window"] = row.which.window;
  json["ranks"] = 2;
  json["target"] = row.busy_target ? "busy" : "idle";
  if (row.busy_target)
    json["waited"] = row.waited ? nlohmann::ordered_json(*row.waited) : nlohmann::ordered_json(nullptr);
  json["n"] = row.us.n;
  json["us"] = to_json(row.us);
  const std::optional<double> gb_s = row.gb_s();
  json["gb_s"] = gb_s ? nlohmann::ordered_json(rounded(*gb_s)) : nlohmann::ordered_json(nullptr);
  json["m_s"] = rounded(row.rate());
  json["check"] = row.check;
  add_machine(json, row.peer, machine);
  if (!row.peer_version.empty()) json["peer_version"] = row.peer_version;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace brant::bench
