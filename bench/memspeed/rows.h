#pragma once

#include <optional>
#include <string>

#include "bench/runner/machine.h"
#include "bench/runner/statistics.h"
#include "brant/base/buffer.h"

namespace brant::bench {

/// A copy from one memory to another, in full and of one element.
struct CopyRow {
  std::string from;  ///< "pinned", or "1:pinned" of the other process.
  std::string to;
  std::string how;  ///< "copy", "put" or "get".
  MemoryKind from_kind = MemoryKind::host;
  MemoryKind to_kind = MemoryKind::host;
  std::string peer;  ///< Empty for brant.
  std::string path;
  std::string short_path;
  std::size_t bytes = 0;
  int ranks = 1;
  bool check = false;
  Summary full_us;
  Summary short_us;

  [[nodiscard]] std::optional<double> gb_s() const noexcept;
};

/// What the CPU does to a memory.
struct AccessRow {
  std::string memory;
  MemoryKind kind = MemoryKind::host;
  std::string what;          ///< "sequential write" and so on, "pointer chase"
  std::size_t bytes = 0;     ///< That a pass touches.
  std::size_t accesses = 0;  ///< Of 8 bytes.
  int ranks = 1;
  Summary us;  ///< Of a pass.

  [[nodiscard]] double ns_per_access() const noexcept;
};

std::string copy_header();
std::string copy_line(const CopyRow& row);
std::string access_header();
std::string access_line(const AccessRow& row);
/// One line of JSON each.
std::string to_json(const CopyRow& row, const Machine& machine);
std::string to_json(const AccessRow& row, const Machine& machine);

}  // namespace brant::bench
