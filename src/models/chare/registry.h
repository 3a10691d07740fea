#pragma once

#include <cstdint>
#include <vector>

#include "brant/chare/detail/registry.h"

namespace brant::detail {

/// All that this program enrolled, sorted by hash; the place is the number that travels.
class Registry {
 public:
  /// Sorts, numbers and checks what was enrolled so far. Throws invalid_argument for two classes of one name and for
  /// names that collide.
  static const Registry& of_program();

  explicit Registry(std::vector<Registered*> lines);

  /// Null for a number that is none, or of another kind.
  template <typename Info>
  [[nodiscard]] const Info* find(std::uint16_t number, RegisteredKind kind) const noexcept {
    if (number >= lines_.size() || lines_[number]->kind != kind) return nullptr;
    return static_cast<const Info*>(lines_[number]);
  }
  /// Equal where the programs are equal.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  [[nodiscard]] std::size_t size() const noexcept { return lines_.size(); }

 private:
  std::vector<Registered*> lines_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace brant::detail
