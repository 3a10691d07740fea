#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "decomposition.h"
#include "options.h"

namespace jacobi {

/// What the processes found out about one run: first of one of them, then `join`ed. Times are means over iterations and
/// blocks, in microseconds.
struct Figures {
  double iteration = 0.0, compute = 0.0, communication = 0.0;
  double halo_bytes = 0.0;      ///< Sent per iteration by the process that sends most.
  double copy_bandwidth = 0.0;  ///< Bytes per second of plain copies in the same memory, read plus written.
  std::array<double, brant::kPathCount> path_bytes{};  ///< Sent, warm-up and headers of messages included.

  void join(const Figures& other) noexcept;
  /// By which most bytes went, whatever was asked for; "none": nothing was sent.
  [[nodiscard]] std::string path() const;
};

struct Report {
  Options options;
  Extent blocks;
  brant::MemoryKind memory = brant::MemoryKind::host;
  Figures figures;
  std::optional<Residual> residual;
  std::vector<double> samples;  ///< Of rank 0's first block.

  /// Of the copies' bandwidth, what the sweep reaches, counting 16 bytes a cell: one read, one written. 0: no meaning.
  [[nodiscard]] double bandwidth_fraction() const noexcept;
};

/// The aligned table of one or two runs; `staged`, if given, is the run the others are compared with.
std::string table(const std::vector<Report>& runs, const Report* staged);

/// One line of JSON. Names the machine of this process.
std::string json_row(const Report& run, const Report* staged, brant::Runtime& runtime);

}  // namespace jacobi
