#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "brant/chare/detail/gathering.h"

namespace brant {

/// Operations of reductions. They act on scalars; on std::vector, std::array and std::span element by element (all
/// contributions have one length); on tuples and pairs member by member. The order of combination is not fixed: sums of
/// floating-point numbers may differ in the last bits between runs.
///
/// A user's operation is a type that can be called with two values: `struct Closest { Hit operator()(const Hit& a,
/// const Hit& b) const; }`, or a free function, `reduce::By<&closest>`. It must be associative and commutative. It is
/// named by its type, the same on all ranks.
namespace reduce {

namespace detail {
template <typename T>
concept Scalar = (!std::ranges::range<T> || std::same_as<T, std::string>) && !brant::detail::kIsTuple<T>;
}  // namespace detail

struct Sum {
  template <detail::Scalar T>
    requires requires(const T& value) { value + value; }
  T operator()(const T& left, const T& right) const {
    return static_cast<T>(left + right);
  }
};
struct Product {
  template <detail::Scalar T>
    requires requires(const T& value) { value * value; }
  T operator()(const T& left, const T& right) const {
    return static_cast<T>(left * right);
  }
};
struct Min {
  template <detail::Scalar T>
    requires requires(const T& value) { value < value; }
  T operator()(const T& left, const T& right) const {
    return right < left ? right : left;
  }
};
struct Max {
  template <detail::Scalar T>
    requires requires(const T& value) { value < value; }
  T operator()(const T& left, const T& right) const {
    return left < right ? right : left;
  }
};
/// Logical.
struct And {
  template <detail::Scalar T>
    requires std::convertible_to<T, bool>
  T operator()(const T& left, const T& right) const {
    return static_cast<T>(static_cast<bool>(left) && static_cast<bool>(right));
  }
};
struct Or {
  template <detail::Scalar T>
    requires std::convertible_to<T, bool>
  T operator()(const T& left, const T& right) const {
    return static_cast<T>(static_cast<bool>(left) || static_cast<bool>(right));
  }
};
struct Xor {
  template <detail::Scalar T>
    requires std::convertible_to<T, bool>
  T operator()(const T& left, const T& right) const {
    return static_cast<T>(static_cast<bool>(left) != static_cast<bool>(right));
  }
};
struct BitAnd {
  template <std::integral T>
  T operator()(T left, T right) const {
    return static_cast<T>(left & right);
  }
};
struct BitOr {
  template <std::integral T>
  T operator()(T left, T right) const {
    return static_cast<T>(left | right);
  }
};
struct BitXor {
  template <std::integral T>
  T operator()(T left, T right) const {
    return static_cast<T>(left ^ right);
  }
};
/// Containers (std::vector, std::string), joined in the order of the contributors' indices.
struct Concat {};
/// Values of any type: gives the std::vector of them in the order of the contributors' indices.
struct Gather {};
/// A free function.
template <auto Function>
struct By {
  template <typename T>
    requires std::is_invocable_r_v<T, decltype(Function), const T&, const T&>
  T operator()(const T& left, const T& right) const {
    return Function(left, right);
  }
};
/// For tuples and pairs: an operation for each member. `Each<Sum, Min>` for (count, smallest).
template <typename... Operations>
struct Each {};
/// Only tells that all have contributed: a barrier.
struct Nothing {
  std::tuple<> operator()(const std::tuple<>&, const std::tuple<>&) const { return {}; }
};

}  // namespace reduce

namespace detail {

/// How a contribution is kept: views own their items.
template <typename T>
struct Contributed {
  using type = T;
};
template <typename T, std::size_t N>
struct Contributed<std::span<T, N>> {
  using type = std::vector<std::remove_const_t<T>>;
};
template <>
struct Contributed<std::string_view> {
  using type = std::string;
};
template <typename T>
using ContributedType = typename Contributed<std::decay_t<T>>::type;

template <typename Operation, typename T>
struct ReductionResultOf {
  using type = T;
};
template <typename T>
struct ReductionResultOf<reduce::Gather, T> {
  using type = std::vector<T>;
};

template <typename T>
concept Elementwise = requires(T& value, std::size_t i) {
  value.size();
  value[i];
};

template <typename Operation>
struct Combine {
  template <typename T>
  static void apply(T& into, const T& from) {
    if constexpr (std::is_invocable_r_v<T, Operation, const T&, const T&>) {
      into = Operation{}(std::as_const(into), from);
    } else if constexpr (Elementwise<T>) {
      if (into.size() != from.size()) throw LengthsDiffer{into.size(), from.size()};
      for (std::size_t i = 0; i < into.size(); ++i) apply(into[i], from[i]);
    } else if constexpr (kIsTuple<T>) {
      members(into, from, std::make_index_sequence<std::tuple_size_v<T>>{});
    } else {
      static_assert(kNeverTrue<T>,
                    "brant: this operation cannot combine values of this type: pass a type that can be called with two "
                    "of them and gives one, or reduce::By<&function>");
    }
  }
  template <typename T, std::size_t... I>
  static void members(T& into, const T& from, std::index_sequence<I...>) {
    (apply(std::get<I>(into), std::get<I>(from)), ...);
  }
};
template <typename... Operations>
struct Combine<reduce::Each<Operations...>> {
  template <typename T>
  static void apply(T& into, const T& from) {
    static_assert(kIsTuple<T>, "brant: reduce::Each combines tuples and pairs");
    static_assert(std::tuple_size_v<T> == sizeof...(Operations), "brant: reduce::Each has one operation per member");
    members(into, from, std::index_sequence_for<Operations...>{});
  }
  template <typename T, std::size_t... I>
  static void members(T& into, const T& from, std::index_sequence<I...>) {
    (Combine<Operations>::apply(std::get<I>(into), std::get<I>(from)), ...);
  }
};

template <typename Operation, typename T>
class PartialOf final : public Partial {
 public:
  void add(const void* value, const ElementKey&) override { take(*static_cast<const T*>(value)); }
  void merge(ReadArchive& other) override {
    T value{};
    other(value);
    take(value);
  }
  void measure(SizeArchive& archive, bool) override { archive(value_); }
  void write(WriteArchive& archive, bool) override { archive(value_); }

 private:
  void take(const T& value) {
    if (std::exchange(any_, true)) {
      Combine<Operation>::apply(value_, value);
    } else {
      value_ = value;
    }
  }
  T value_{};
  bool any_ = false;
};

/// Gather and concat: who said what, put in order at the end.
template <typename Operation, typename T, typename I>
class CollectedPartial final : public Partial {
 public:
  void add(const void* value, const ElementKey& from) override {
    items_.emplace_back(from, *static_cast<const T*>(value));
  }
  void merge(ReadArchive& other) override {
    std::vector<std::pair<ElementKey, T>> more;
    other(more);
    for (auto& item : more) items_.push_back(std::move(item));
  }
  void measure(SizeArchive& archive, bool result) override { put(archive, result); }
  void write(WriteArchive& archive, bool result) override { put(archive, result); }

 private:
  void put(auto& archive, bool result) {
    if (!result) return archive(items_);
    std::stable_sort(items_.begin(), items_.end(), [](const auto& left, const auto& right) {
      if constexpr (std::totally_ordered<I>) {
        return left.first.template as<I>() < right.first.template as<I>();
      } else {
        return std::memcmp(left.first.word.data(), right.first.word.data(), sizeof(I)) < 0;
      }
    });
    if constexpr (std::is_same_v<Operation, reduce::Gather>) {
      std::vector<T> values;
      values.reserve(items_.size());
      for (const auto& item : items_) values.push_back(item.second);
      archive(values);
    } else {
      T joined{};
      for (const auto& item : items_) joined.insert(joined.end(), item.second.begin(), item.second.end());
      archive(joined);
    }
  }
  std::vector<std::pair<ElementKey, T>> items_;
};

template <typename Operation, typename T, typename I>
struct ReducerOf {
  static constexpr bool kCollects =
      std::is_same_v<Operation, reduce::Gather> || std::is_same_v<Operation, reduce::Concat>;
  using Made = std::conditional_t<kCollects, CollectedPartial<Operation, T, I>, PartialOf<Operation, T>>;

  static std::unique_ptr<Partial> make() { return std::make_unique<Made>(); }
  static inline constinit ReducerInfo info{
      {RegisteredKind::reducer, name_hash("reducer", type_name<Operation>(), type_name<T>(), type_name<I>()),
       type_name<Operation>(), "", type_name<T>()},
      &make};
  static inline const bool enrolled = enroll(info);
  static const ReducerInfo& get() noexcept {
    [[maybe_unused]] const bool* keep = &enrolled;
    return info;
  }
};

}  // namespace detail

/// What a reduction of values of type T gives.
template <typename Operation, typename T>
using ReductionResult = typename detail::ReductionResultOf<Operation, detail::ContributedType<T>>::type;

}  // namespace brant
