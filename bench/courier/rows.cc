#include "rows.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace brant::bench {
namespace {

using Json = nlohmann::ordered_json;
using bench::rounded;

Json row_of(const std::string& bench, const std::string& memory, std::size_t bytes, std::size_t window,
            const Summary& us) {
  return {{"bench", bench}, {"model", "courier"}, {"memory", memory}, {"trigger", "host"}, {"path", "courier"},
          {"bytes", bytes}, {"window", window},   {"ranks", 2},       {"n", us.n},         {"us", bench::to_json(us)}};
}

}  // namespace

void Rows::transfer(const std::string& bench, std::size_t bytes, std::size_t window, const Summary& us) {
  if (silent_) return;
  const double gb_s = us.p50 > 0 ? static_cast<double>(bytes) * static_cast<double>(window) / us.p50 / 1e3 : 0;
  fmt::print("{:<10} {:>8} {:>7} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f}\n", bench, bytes, window, us.min, us.p50,
             us.p99, gb_s);
  Json row = row_of(bench, memory_, bytes, window, us);
  row["gb_s"] = rounded(gb_s);
  append(std::move(row));
}

void Rows::figure(const std::string& bench, double figure, const std::string& unit, const Summary& us) {
  if (silent_) return;
  fmt::print("{:<28} {:>10.2f} {:<6} min {:.2f} p50 {:.2f} p99 {:.2f} max {:.2f} us\n", bench, figure, unit, us.min,
             us.p50, us.p99, us.max);
  Json row = row_of(bench, memory_, 0, 1, us);
  row["figure"] = rounded(figure);
  row["unit"] = unit;
  append(std::move(row));
}

void Rows::litmus(const std::string& landing, std::size_t bytes, std::size_t rounds, std::size_t stale) {
  if (silent_) return;
  fmt::print("litmus {:<14} {:>8} B {:>8} rounds {:>8} stale\n", landing, bytes, rounds, stale);
  append({{"bench", "courier_litmus"},
          {"landing", landing},
          {"bytes", bytes},
          {"n", rounds},
          {"stale", stale},
          {"memory", memory_}});
}

void Rows::say(const std::string& line) const {
  if (silent_) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void Rows::append(Json row) {
  std::fflush(stdout);
  bench::add_machine(row, "", machine_);
  file_.append(row.dump());
}

}  // namespace brant::bench
