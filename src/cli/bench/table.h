#pragma once

#include <optional>
#include <string>

#include "cli/bench/row.h"

namespace brant::cli::bench {

/// The lines people read: columns of fixed width, so that each size can be printed when it is done.
class Table {
 public:
  Table(Kind kind, bool with_rival) : kind_(kind), with_rival_(with_rival) {}

  [[nodiscard]] std::string header() const;
  /// `rival` is absent where the rival does not take the memory.
  [[nodiscard]] std::string line(const Row& ours, const std::optional<Row>& rival) const;

 private:
  Kind kind_;
  bool with_rival_;
};

}  // namespace brant::cli::bench
