#include "rows.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "brant/base/status.h"

namespace brant::bench {
namespace {

using Json = nlohmann::ordered_json;

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "";
}

Json us_of(const Samples& us) { return {{"min", rounded(us.min)}, {"p50", rounded(us.p50)}, {"p99", rounded(us.p99)}}; }

Json row_of(const std::string& bench, const std::string& memory, std::size_t bytes, std::size_t window,
            const Samples& us) {
  return {{"bench", bench}, {"model", "courier"}, {"memory", memory}, {"trigger", "host"}, {"path", "courier"},
          {"bytes", bytes}, {"window", window},   {"ranks", 2},       {"n", us.n},         {"us", us_of(us)}};
}

void add_machine(Json& row, const port::DeviceCapabilities& device) {
  row["peer"] = nullptr;
  row["brant"] = BRANT_VERSION;
  row["ucx"] = nullptr;
  row["cuda"] = device.driver;
  row["gpu"] = device.name;
  row["cpu"] = cpu_name();
  row["host"] = host_name();
}

}  // namespace

Samples Samples::of(std::vector<double> us) {
  if (us.empty()) return {};
  std::sort(us.begin(), us.end());
  const auto at = [&](double part) { return us[static_cast<std::size_t>(part * static_cast<double>(us.size() - 1))]; };
  return {.min = us.front(), .p50 = at(0.5), .p99 = at(0.99), .max = us.back(), .n = us.size()};
}

void Rows::transfer(const std::string& bench, std::size_t bytes, std::size_t window, const Samples& us) {
  if (silent_) return;
  const double gb_s = us.p50 > 0 ? static_cast<double>(bytes) * static_cast<double>(window) / us.p50 / 1e3 : 0;
  fmt::print("{:<10} {:>8} {:>7} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f}\n", bench, bytes, window, us.min, us.p50,
             us.p99, gb_s);
  Json row = row_of(bench, memory_, bytes, window, us);
  row["gb_s"] = rounded(gb_s);
  add_machine(row, device_);
  append(row.dump());
}

void Rows::figure(const std::string& bench, double figure, const std::string& unit, const Samples& us) {
  if (silent_) return;
  fmt::print("{:<28} {:>10.2f} {:<6} min {:.2f} p50 {:.2f} p99 {:.2f} max {:.2f} us\n", bench, figure, unit, us.min,
             us.p50, us.p99, us.max);
  Json row = row_of(bench, memory_, 0, 1, us);
  row["figure"] = rounded(figure);
  row["unit"] = unit;
  add_machine(row, device_);
  append(row.dump());
}

void Rows::say(const std::string& line) const {
  if (silent_) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void Rows::append(const std::string& line) const {
  std::fflush(stdout);
  if (path_.empty()) return;
  std::ofstream file(path_, std::ios::app);
  file << line << '\n';
  if (!file) throw Error(Status::io_error, fmt::format("--json {}: a row could not be written", path_));
}

}  // namespace brant::bench
