#pragma once

#include <array>
#include <string>
#include <vector>

#include "brant/brant.h"
#include "options.h"

namespace jacobi {

/// Bytes that went by each path.
using PathBytes = std::array<double, brant::kPathCount>;

/// One run. Times are means over iterations and blocks, in microseconds.
struct Report {
  Options options;
  Decomposition cut;
  brant::MemoryKind memory = brant::MemoryKind::host;
  Solution mean;                ///< The samples are of rank 0's first block.
  double halo_bytes = 0.0;      ///< Sent per iteration by the process that sends most.
  double copy_bandwidth = 0.0;  ///< Bytes per second of a plain copy in the same memory, read plus written.
  PathBytes path_bytes{};       ///< Of all processes, warm-up and what belongs to the messages included.

  /// By which most bytes went, whatever was asked for; "none": nothing was sent.
  [[nodiscard]] std::string path() const;
  /// What the sweep reaches of the copy, counting 16 bytes a cell: one read, one written. 0 where it has no meaning.
  [[nodiscard]] double bandwidth_fraction() const noexcept;
};

/// The aligned table of one or two runs; `staged`, if given, is the run the others are compared with.
std::string table(const std::vector<Report>& runs, const Report* staged);

/// One line of JSON. Names the machine of this process.
std::string json_row(const Report& run, const Report* staged, brant::Runtime& runtime);

}  // namespace jacobi
