#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/runner/row.h"

namespace brant::bench {

using bench::Summary;

/// The table on standard output and, with a file, one JSON object per row in it.
class Rows {
 public:
  Rows(const std::string& path, const port::Device& device, std::string memory, bool silent)
      : file_(path), machine_(bench::describe_machine(device)), memory_(std::move(memory)), silent_(silent) {}

  void transfer(const std::string& bench, std::size_t bytes, std::size_t window, const Summary& us);
  /// Anything that is no transfer: `figure` in its unit.
  void figure(const std::string& bench, double figure, const std::string& unit, const Summary& us);
  /// What a litmus test found.
  void litmus(const std::string& landing, std::size_t bytes, std::size_t rounds, std::size_t stale);
  void say(const std::string& line) const;

 private:
  void append(nlohmann::ordered_json row);

  bench::RowFile file_;
  const bench::Machine machine_;
  const std::string memory_;
  const bool silent_;
};

}  // namespace brant::bench
