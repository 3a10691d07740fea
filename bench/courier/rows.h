#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "port/memory.h"

namespace brant::bench {

/// Microseconds of one thing done many times.
struct Samples {
  double min = 0;
  double p50 = 0;
  double p99 = 0;
  double max = 0;
  std::size_t n = 0;

  static Samples of(std::vector<double> us);
};

/// The table on standard output and, with a file, one JSON object per row in it.
class Rows {
 public:
  Rows(std::string path, const port::DeviceCapabilities& device, std::string memory, bool silent)
      : path_(std::move(path)), device_(device), memory_(std::move(memory)), silent_(silent) {}

  void transfer(const std::string& bench, std::size_t bytes, std::size_t window, const Samples& us);
  /// Anything that is no transfer: `figure` in its unit.
  void figure(const std::string& bench, double figure, const std::string& unit, const Samples& us);
  void say(const std::string& line) const;

 private:
  void append(const std::string& line) const;

  const std::string path_;
  const port::DeviceCapabilities& device_;
  const std::string memory_;
  const bool silent_;
};

}  // namespace brant::bench
