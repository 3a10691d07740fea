#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/model/max_rate.h"
#include "bench/model/postal.h"

namespace brant::bench::model {

/// A way between two processes, for memory of one kind of ends ("host", "mapped", "device").
struct PathParameters {
  std::string path;
  std::string from;
  std::string to;
  PiecewisePostal postal;
  std::optional<MaxRate> rate;  ///< Of several pairs at once, where that was measured.
  double best_gb_s = 0;         ///< More was never seen: what a lower bound goes by.
};

/// What a small message costs, in microseconds.
struct LogGp {
  Figure send;     ///< o_s: the CPU that posts it.
  Figure receive;  ///< o_r: the progress that completes it.
  Figure gap;      ///< g: between messages that follow each other.
  Figure latency;  ///< L = one way - o_s - o_r.
};

/// Copies within a process; 1e9 bytes copied a second.
struct CopyParameters {
  std::string what;  ///< "host", "device", "up" (to the device), "down".
  double us = 0;     ///< Of the smallest one.
  double best_gb_s = 0;
  double large_gb_s = 0;  ///< Of those that no cache holds.
};

/// The kernel by which halo exchanges pack: from the launch by the CPU until that sees the end, by the bytes it packs.
struct PackParameters {
  PiecewisePostal postal;
  double best_gb_s = 0;  ///< Without the launch; more was never seen.
};

/// Between a kernel that runs and the CPU, in microseconds.
struct NotifyParameters {
  double to_host = 0;
  double to_device = 0;
};

/// What holds for a machine, as `brant calibrate --model` measured it.
struct Parameters {
  std::string brant, ucx, cuda, host;
  std::vector<std::string> gpus;
  int pairs = 1;  ///< Of processes that sent at once, at most.
  std::vector<PathParameters> paths;
  LogGp messages;
  std::vector<CopyParameters> copies;
  std::optional<NotifyParameters> notify;
  std::optional<PackParameters> pack;  ///< Of the device.
  std::vector<std::string> notes;      ///< What is missing, and why.

  [[nodiscard]] const CopyParameters* copy(const std::string& what) const;
};

/// One JSON object, and back. Throws Error invalid_argument naming the file and the fault.
std::string to_json(const Parameters& parameters);
Parameters parse_parameters(const std::string& text, const std::string& file);

}  // namespace brant::bench::model
