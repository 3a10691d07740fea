#pragma once

#include <algorithm>
#include <vector>

#include "models/mpi/files/file_layout.h"
#include "random_types.h"

namespace brant::mpi::test {

/// Whether bytes go forward, and none is there twice.
inline bool ascends(const std::vector<Count>& places) {
  return std::ranges::adjacent_find(places, std::greater_equal<>()) == places.end();
}

/// Types by chance that may be filetypes. Most others are lists that go backwards.
class FittingTypes {
 public:
  explicit FittingTypes(unsigned seed) : random_(seed) {}

  Count number(Count low, Count high) { return random_.number(low, high); }
  /// With bytes, which ascend.
  Twin make() {
    while (true) {
      Twin twin = random_.make(static_cast<int>(number(1, 4)));
      const std::vector<Count> places = twin.model.bytes(3);
      if (!places.empty() && places.front() >= 0 && ascends(places)) return twin;
    }
  }

 private:
  RandomTypes random_;
};

}  // namespace brant::mpi::test
