#include "cli/info/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>

#include "base/host_name.h"

namespace brant::cli::info {
namespace {

constexpr double kNoQuota = 1e9;

/// Cores' worth of time the control group allows. "max 100000" or "200000 100000".
double cpu_quota() {
  std::istringstream text(read_file("/sys/fs/cgroup/cpu.max"));
  double quota = 0, period = 0;
  return (text >> quota >> period) && quota > 0 && period > 0 ? quota / period : kNoQuota;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const int allowed = ::sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1;
  return std::max(1, std::min(allowed, static_cast<int>(std::ceil(cpu_quota()))));
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string name = "unknown processor";
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.rfind("model name", 0) != 0) continue;
    name = trimmed(line.substr(colon + 1));
    break;
  }
  const int cores = usable_cores();
  return fmt::format("{}, {} core{}", name, cores, cores == 1 ? "" : "s");
}

std::string short_host_name() {
  const std::string whole = host_name();
  return whole.substr(0, whole.find('.'));
}

}  // namespace brant::cli::info
