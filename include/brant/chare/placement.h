#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "brant/chare/detail/registry.h"

namespace brant {

namespace detail {

/// What a placement function is told besides the index.
struct PlacementScope {
  std::int32_t ranks = 1;
  std::array<std::int32_t, 6> extent{};  ///< Of a dense array; zeros otherwise.
};

template <auto Function, typename I>
struct PlacementOf {
  static std::int32_t rank_of(const ElementKey& key, const PlacementScope& scope) {
    return Function(key.template as<I>(), scope.ranks);
  }
  static inline PlacementInfo info{{RegisteredKind::placement, name_hash("placement", value_name<Function>()),
                                    value_name<Function>(), "", type_name<I>()},
                                   &rank_of};
  static inline const bool enrolled = enroll(info);
};

template <typename F>
struct PlacementSignature;
template <typename R, typename I>
struct PlacementSignature<R (*)(I, int)> {
  using IndexType = std::remove_cvref_t<I>;
};

}  // namespace detail

/// Says on which rank each element of an array lives. The same on all ranks: a pure function of the index.
class Placement {
 public:
  enum class Kind : std::uint8_t { block, round_robin, hashed, function, listed, like };

  /// Contiguous runs in row-major order, as equal as possible. Dense arrays only; the default of these.
  static Placement block() noexcept { return Placement(Kind::block); }
  /// Row-major number modulo ranks (the first coordinate, for a sparse array with one).
  static Placement round_robin() noexcept { return Placement(Kind::round_robin); }
  /// By a hash of the index: the default of sparse arrays.
  static Placement hashed() noexcept { return Placement(Kind::hashed); }
  /// By the user: `int my_map(const Index<2>& index, int ranks)`, a free function that gives a rank from 0 to ranks-1
  /// and depends on nothing else. `Placement::by<my_map>()`. Making a dense array asks it for every index on every
  /// rank.
  template <auto Function>
  static Placement by() noexcept {
    using I = typename detail::PlacementSignature<decltype(Function)>::IndexType;
    Placement placement(Kind::function);
    static_cast<void>(detail::PlacementOf<Function, I>::enrolled);
    placement.function_ = &detail::PlacementOf<Function, I>::info;
    return placement;
  }
  /// By a list: the rank of every element of a dense array, in row-major order. It travels with the message that makes
  /// the array, and is kept on every rank: 4 bytes for each element, of which there are 2^24 at most. Making the array
  /// throws invalid_argument for a list of another length, and for a rank that the job has not; limit_reached.
  static Placement listed(std::vector<std::int32_t> ranks) {
    Placement placement(Kind::listed);
    placement.list_ = std::make_shared<const std::vector<std::int32_t>>(std::move(ranks));
    return placement;
  }
  /// As another array: elements of one index are neighbours on one rank for ever (a bound array).
  template <typename ArrayProxy>
  static Placement like(const ArrayProxy& array) noexcept {
    Placement placement(Kind::like);
    placement.like_ = array.collection();
    return placement;
  }

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] const detail::PlacementInfo* function() const noexcept { return function_; }
  /// Null but for `listed`.
  [[nodiscard]] const std::vector<std::int32_t>* list() const noexcept { return list_.get(); }
  [[nodiscard]] std::uint32_t like_collection() const noexcept { return like_; }

 private:
  explicit Placement(Kind kind) noexcept : kind_(kind) {}

  Kind kind_;
  const detail::PlacementInfo* function_ = nullptr;
  std::shared_ptr<const std::vector<std::int32_t>> list_;
  std::uint32_t like_ = 0;
};

}  // namespace brant
