#pragma once

#include <optional>
#include <string>
#include <utility>

#include "bench/runner/row.h"

namespace brant::bench {

/// Three to four digits that mean something at any size.
std::string figure(double value);

/// The lines people read: columns of fixed width, so that each size can be printed when it is done.
class Table {
 public:
  /// `rival` is its name, empty for none.
  Table(Kind kind, std::string rival) : kind_(kind), rival_(std::move(rival)) {}

  [[nodiscard]] std::string header() const;
  /// `rival` is absent where the rival does not take the memory.
  [[nodiscard]] std::string line(const Row& ours, const std::optional<Row>& rival) const;

 private:
  Kind kind_;
  std::string rival_;
};

}  // namespace brant::bench
