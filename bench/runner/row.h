#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "bench/runner/machine.h"
#include "bench/runner/options.h"
#include "bench/runner/statistics.h"

namespace brant::bench {

/// One measured size of one contender.
struct Row {
  Kind kind = Kind::latency;
  Model model = Model::channel;
  Trigger trigger = Trigger::host;
  MemoryKind memory = MemoryKind::host;
  Alloc alloc = Alloc::library;
  std::string path;
  std::string peer;          ///< Empty for brant.
  std::string peer_version;  ///< Where no other field has it; empty: not in the row.
  std::size_t bytes = 0;
  std::size_t window = 1;
  int ranks = 2;
  Summary us;  ///< Latency: one way. Bandwidth: per window.

  /// Messages of a sample, in both directions.
  [[nodiscard]] double messages() const noexcept;
  /// 1e9 bytes a second, from the median.
  [[nodiscard]] double gb_s() const noexcept;
  /// Messages a microsecond, which is a million a second, from the median.
  [[nodiscard]] double rate() const noexcept;
};

/// Rows are read by people too: a tenth of a nanosecond is enough.
double rounded(double value);
/// "min", "p50", "p99".
nlohmann::ordered_json to_json(const Summary& us);
/// The fields "peer" to "host".
void add_machine(nlohmann::ordered_json& row, const std::string& peer, const Machine& machine);
/// The row as one line of JSON, with the fields every benchmark of brant has.
std::string to_json(const Row& row, const Machine& machine);

/// Appends lines to a file; each goes out whole, so that several programs may append to one file.
class RowFile {
 public:
  RowFile() = default;
  /// Throws Error naming the file and the reason.
  explicit RowFile(const std::string& path);
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;
  ~RowFile();

  /// Nothing happens without a file. Throws Error.
  void append(const std::string& line);

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace brant::bench
