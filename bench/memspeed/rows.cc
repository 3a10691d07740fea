#include "bench/memspeed/rows.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/memspeed/memspeed.h"
#include "bench/runner/row.h"
#include "bench/runner/table.h"

namespace brant::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json rounded_or_null(std::optional<double> value) { return value ? Json(rounded(*value)) : Json(nullptr); }

}  // namespace

std::optional<double> CopyRow::gb_s() const noexcept { return rate_without_start(bytes, full_us.p50, short_us.p50); }

double AccessRow::ns_per_access() const noexcept {
  return accesses > 0 ? us.p50 * 1e3 / static_cast<double>(accesses) : 0;
}

std::string copy_header() {
  return fmt::format("{:<11} {:<11} {:<4} {:>10} {:>11} {:>9}  {:<24} {:<5} {:>4}", "from", "to", "by", "short us",
                     "full us", "GB/s", "path (full, short)", "peer", "n");
}

std::string copy_line(const CopyRow& row) {
  const std::optional<double> gb_s = row.gb_s();
  const std::string path = row.path == row.short_path ? row.path : row.path + ", " + row.short_path;
  return fmt::format("{:<11} {:<11} {:<4} {:>10} {:>11} {:>9}  {:<24} {:<5} {:>4}", row.from, row.to, row.how,
                     figure(row.short_us.p50), figure(row.full_us.p50), gb_s ? figure(*gb_s) : "-", path,
                     row.peer.empty() ? "-" : row.peer, row.full_us.n);
}

std::string access_header() {
  return fmt::format("{:<11} {:<18} {:>9} {:>11} {:>9} {:>10} {:>4}", "memory", "by the CPU", "bytes", "p50 us", "GB/s",
                     "ns/access", "n");
}

std::string access_line(const AccessRow& row) {
  const std::optional<double> gb_s = rate_without_start(row.bytes, row.us.p50, 0);
  return fmt::format("{:<11} {:<18} {:>9} {:>11} {:>9} {:>10} {:>4}", row.memory, row.what, format_size(row.bytes),
                     figure(row.us.p50), gb_s ? figure(*gb_s) : "-", figure(row.ns_per_access()), row.us.n);
}

std::string to_json(const CopyRow& row, const Machine& machine) {
  Json json;
  json["bench"] = "memspeed_copy";
  json["model"] = row.how;
  json["from"] = row.from;
  json["to"] = row.to;
  json["memory"] = memory_kind_name(row.from_kind);
  json["to_memory"] = memory_kind_name(row.to_kind);
  json["trigger"] = "host";
  json["path"] = row.path;
  json["short_path"] = row.short_path;
  json["bytes"] = row.bytes;
  json["short_bytes"] = kElementBytes;
  json["window"] = 1;
  json["ranks"] = row.ranks;
  json["n"] = row.full_us.n;
  json["us"] = to_json(row.full_us);
  json["short_us"] = to_json(row.short_us);
  json["gb_s"] = rounded_or_null(row.gb_s());
  json["check"] = row.check;
  add_machine(json, row.peer, machine);
  return text_of(json);
}

std::string to_json(const AccessRow& row, const Machine& machine) {
  Json json;
  json["bench"] = "memspeed_access";
  json["model"] = row.what;
  json["memory"] = memory_kind_name(row.kind);
  json["trigger"] = "host";
  json["path"] = nullptr;
  json["bytes"] = row.bytes;
  json["accesses"] = row.accesses;
  json["window"] = 1;
  json["ranks"] = row.ranks;
  json["n"] = row.us.n;
  json["us"] = to_json(row.us);
  json["ns_per_access"] = rounded(row.ns_per_access());
  json["gb_s"] = rounded_or_null(rate_without_start(row.bytes, row.us.p50, 0));
  add_machine(json, "", machine);
  return text_of(json);
}

}  // namespace brant::bench
