#include "base/variables.h"

#include <algorithm>

namespace brant {
namespace {

constexpr std::size_t kNear = 3;  // edits

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t substituted = diagonal + (left[i - 1] == right[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

const std::vector<std::string_view>& known_variables() {
  static const std::vector<std::string_view> names = {
      // Set by users.
      "BRANT_ALLOW_MIXED_UCX", "BRANT_BOOT_TIMEOUT_MS", "BRANT_BOOTSTRAP", "BRANT_CALIBRATION", "BRANT_COPY_SIGNAL",
      "BRANT_COURIER", "BRANT_COURIER_BLOCKS", "BRANT_COURIER_FENCES", "BRANT_COURIER_IDLE_US",
      "BRANT_COURIER_LEASE_US", "BRANT_EMULATED_FILES", "BRANT_EMULATED_GB_S", "BRANT_EMULATED_US", "BRANT_GPU",
      "BRANT_JOIN", "BRANT_LEASE", "BRANT_LOG", "BRANT_MPI_CHECK", "BRANT_MPI_PORTS", "BRANT_MPI_SHARE_LIBRARIES",
      "BRANT_MPI_STACK", "BRANT_NCCL", "BRANT_PATH", "BRANT_PMIX_LIBRARY", "BRANT_SHARE_GPU", "BRANT_SLEEP",
      "BRANT_STALL_REPORT_MS", "BRANT_STATISTICS", "BRANT_TRACE", "BRANT_TRACE_EVENTS", "BRANT_UCX", "BRANT_WIRE",
      // Set by `brant run`.
      "BRANT_BOOT_FD", "BRANT_JOB_ID", "BRANT_LOCAL_RANK", "BRANT_LOCAL_SIZE", "BRANT_MPI_APPNUM", "BRANT_MPI_PARENT",
      "BRANT_MPI_RANKS", "BRANT_RANK", "BRANT_SIZE", "BRANT_SPAWN_NAME",
      // Read by tests and tools.
      "BRANT_BIN", "BRANT_FUZZ_FACTOR"};
  return names;
}

bool is_unread_variable(std::string_view name) {
  if (!name.starts_with("BRANT_") || name.starts_with("BRANT_TEST_")) return false;
  const std::vector<std::string_view>& names = known_variables();
  return std::find(names.begin(), names.end(), name) == names.end();
}

std::string nearest_variable(std::string_view name) {
  std::string best;
  std::size_t least = kNear + 1;
  for (const std::string_view known : known_variables()) {
    const std::size_t distance = edit_distance(name, known);
    if (distance >= least) continue;
    least = distance;
    best = known;
  }
  return best;
}

}  // namespace brant
