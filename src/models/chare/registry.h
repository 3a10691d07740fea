#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "brant/chare/detail/registry.h"

namespace brant::detail {

/// What has been enrolled in this process, with a number or without; null for nothing.
[[nodiscard]] const Registered* find_enrolled(RegisteredKind kind, std::uint64_t hash) noexcept;

/// What was enrolled late, as rank 0 is asked for its number.
struct LateName {
  RegisteredKind kind = RegisteredKind::absent;
  std::uint64_t hash = 0;
  std::string text;  ///< For people, and to tell two names of one hash apart.
  void serialize(auto& archive) { archive(kind, hash, text); }
};

struct LateNumber {
  RegisteredKind kind = RegisteredKind::absent;
  std::uint64_t hash = 0;
  std::uint16_t number = kNoNumber;
  void serialize(auto& archive) { archive(kind, hash, number); }
};

/// All that this program enrolled, sorted by hash; the place is the number that travels. What libraries enroll that are
/// opened later stands behind, in the order in which rank 0 was asked for it, so that the places agree as well; a place
/// may be empty here.
class Registry {
 public:
  /// Sorts, numbers and checks what was enrolled so far. Throws invalid_argument for two classes of one name and for
  /// names that collide.
  static Registry& of_program();

  explicit Registry(std::vector<Registered*> lines);

  /// Null for a number that is none, or of another kind.
  template <typename Info>
  [[nodiscard]] const Info* find(std::uint16_t number, RegisteredKind kind) const noexcept {
    if (number >= lines_.size() || lines_[number]->kind != kind) return nullptr;
    return static_cast<const Info*>(lines_[number]);
  }
  /// Equal where the programs are equal.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  /// Of the program, without what came late.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// What was enrolled late and has no number, each name once. A name that is known here gets its number at once: two
  /// libraries may bring the same template along. Throws invalid_argument for names that collide.
  [[nodiscard]] std::vector<LateName> without_number();
  /// On rank 0: the number of a name, a new one if it has none. Throws invalid_argument for names that collide,
  /// limit_reached.
  std::uint16_t give_number(const LateName& name);
  /// What rank 0 answered.
  void admit(const LateNumber& given);
  /// Nothing has this number here, but something may have it elsewhere, and later here.
  [[nodiscard]] bool is_awaited(std::uint16_t number) const noexcept {
    return number >= size_ && number != kNoNumber &&
           (number >= lines_.size() || lines_[number]->kind == RegisteredKind::absent);
  }

 private:
  struct Given {
    std::uint16_t number;
    std::string text;
  };

  [[nodiscard]] Registered* line_of(RegisteredKind kind, std::uint64_t hash) const noexcept;

  std::vector<Registered*> lines_;
  std::size_t size_;
  std::uint64_t fingerprint_ = 0;
  const Registered* newest_ = nullptr;  ///< What stood first in the list of the enrolled when this was made.
  std::map<std::pair<RegisteredKind, std::uint64_t>, Given> given_;  ///< On rank 0.
};

}  // namespace brant::detail
