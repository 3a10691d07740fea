#include "cli/calibrate/load.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>

#include <fmt/format.h>

#include "cli/info/host.h"

namespace brant::cli::calibrate {
namespace {

constexpr double kOthersMax = 0.25;  ///< Of the cores that are left, or of one: what others may use meanwhile.

}  // namespace

LoadWatch::LoadWatch(int processes) : processes_(processes) {}

LoadWatch::CpuTimes LoadWatch::look() {
  CpuTimes times;
  times.at_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0;
  if (file >> name >> user >> nice >> system) {
    times.used_s = (user + nice + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  timespec own{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  times.own_s = static_cast<double>(own.tv_sec) + static_cast<double>(own.tv_nsec) * 1e-9;
  return times;
}

/// The other processes work as much as this one; what else was used is others'.
std::string LoadWatch::complaint() const {
  const CpuTimes now = look();
  const double used_s = now.used_s - before_.used_s - processes_ * (now.own_s - before_.own_s);
  const double others = used_s / std::max(now.at_s - before_.at_s, 1e-3);
  const double cores = info::usable_cores();
  if (now.used_s == 0 || others <= std::max(1.0, cores - processes_) * kOthersMax) return {};
  return fmt::format(
      "this machine is busy (others used {:.1f} of its {} cores meanwhile): these may be its neighbours' "
      "numbers, measure again in a quiet moment",
      others, cores);
}

}  // namespace brant::cli::calibrate
