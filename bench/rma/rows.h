#pragma once

#include <optional>
#include <string>

#include "bench/rma/rma.h"
#include "bench/runner/machine.h"
#include "bench/runner/statistics.h"

namespace brant::bench {

/// One measured line.
struct RmaRow {
  RmaCase which;
  MemoryKind local = MemoryKind::host;
  MemoryKind remote = MemoryKind::host;
  std::string path;
  std::string peer;          ///< Empty for brant.
  std::string peer_version;  ///< Where no other field has it.
  bool busy_target = false;
  std::optional<bool> waited;  ///< Of a busy target: until it was free again. Nothing: it cannot be told.
  bool check = false;
  Summary us;  ///< Of a transfer, a window, or one post (`inject`).

  /// Transfers a microsecond, which is a million a second, from the median.
  [[nodiscard]] double rate() const noexcept;
  /// 1e9 bytes a second, from the median; nothing for posts alone.
  [[nodiscard]] std::optional<double> gb_s() const noexcept;
};

std::string rma_header();
std::string rma_line(const RmaRow& row);
/// One line of JSON.
std::string to_json(const RmaRow& row, const Machine& machine);

}  // namespace brant::bench
