#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "brant/brant.h"
#include "decomposition.h"
#include "patch.h"
#include "solver.h"

namespace jacobi {

/// Bytes that went by each path.
using PathBytes = std::array<double, brant::kPathCount>;

/// One measured run.
struct RunReport {
  std::string path;        ///< By which most bytes went, whatever was asked for; "none": nothing was sent.
  PathBytes path_bytes{};  ///< Of all processes, warm-up and what belongs to the messages included.
  brant::MemoryKind memory = brant::MemoryKind::host;
  Decomposition decomposition;
  bool overlap = false;
  Model model = Model::channel;
  int chares = 1;  ///< Per process.
  std::int64_t iterations = 0;
  Timing timing;
  double residual = 0.0;
  double halo_bytes = 0.0;       ///< Sent per iteration by the process that sends most.
  double copy_bandwidth = 0.0;   ///< Bytes per second of a plain copy in the same memory, read plus written.
  double sweep_bandwidth = 0.0;  ///< The same of the sweep, counting 16 bytes a cell: one read, one written.

  [[nodiscard]] double bandwidth_fraction() const noexcept {
    return copy_bandwidth > 0 ? sweep_bandwidth / copy_bandwidth : 0.0;
  }
};

/// What the rows say about the machine.
struct Machine {
  std::string gpu;   ///< Empty without.
  std::string cuda;  ///< Driver, empty without.
  std::string cpu;
  std::string host;
  std::string ucx;  ///< Version, empty without.

  static Machine of(brant::Runtime& runtime);
};

/// The path with most bytes, or "none".
std::string main_path(const PathBytes& bytes);

/// The aligned table of one or two runs; `staged`, if given, is the run the others are compared with.
std::string table(const std::vector<RunReport>& runs, const RunReport* staged);

/// One line of JSON.
std::string json_row(const RunReport& run, const RunReport* staged, const Machine& machine);

/// Appends a line to a file, whole. Throws io_error.
void append_line(const std::string& file, const std::string& line);

}  // namespace jacobi
