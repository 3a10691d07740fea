#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "brant/ops/rpc/function.h"

namespace brant::remote {

/// "scale, double(double)".
[[nodiscard]] std::string described(const Function& function);

/// The functions that were enrolled so far, by their hashes. Looks for later ones where it does not know a hash.
class Functions {
 public:
  /// Throws invalid_argument for two of one hash.
  Functions();

  /// Null: there is none. Throws invalid_argument for a hash that two have which were enrolled late, bad_alloc.
  const Function* find(std::uint64_t hash);

 private:
  bool take_late_ones();
  [[nodiscard]] const Function* look_up(std::uint64_t hash) const;

  std::vector<const Function*> sorted_;
  const Function* newest_ = nullptr;  ///< Of those in `sorted_`.
};

}  // namespace brant::remote
