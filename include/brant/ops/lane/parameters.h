#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>

#include "brant/base/archive.h"
#include "brant/core/task.h"
#include "brant/ops/lane/data_arguments.h"

/// What a function that is called by messages takes and returns, for the templates that pack its arguments.
namespace brant::detail {

template <typename T>
inline constexpr bool kIsTask = false;
template <typename T>
inline constexpr bool kIsTask<Task<T>> = true;

/// What a caller's Future holds: the result of the function, or of the coroutine it is.
template <typename R>
struct ReplyOf {
  using type = std::remove_cvref_t<R>;
};
template <typename T>
struct ReplyOf<Task<T>> {
  using type = T;
};

template <typename P>
constexpr bool require_argument_travels() noexcept {
  if constexpr (DataParameter<P>::is_data) {
    return true;
  } else {
    return require_travels<P>();
  }
}

template <typename R, typename... Ps>
struct ParameterShape {
  using Result = R;
  using Reply = typename ReplyOf<R>::type;
  using Arguments = std::tuple<std::remove_cvref_t<Ps>...>;
  using Sent = std::tuple<typename DataParameter<std::remove_cvref_t<Ps>>::Sent...>;
  static constexpr std::size_t kCount = sizeof...(Ps);
  static constexpr std::size_t kData =
      (std::size_t{0} + ... + (DataParameter<std::remove_cvref_t<Ps>>::is_data ? 1 : 0));
  static constexpr bool kNoMutableReference =
      ((!std::is_lvalue_reference_v<Ps> || std::is_const_v<std::remove_reference_t<Ps>>) && ...);
  static constexpr bool kByValue = (!std::is_reference_v<Ps> && ...);
  static constexpr bool kNoPointer = (!std::is_pointer_v<std::remove_cvref_t<Ps>> && ...);
  static constexpr bool require_travels() noexcept {
    return (require_argument_travels<std::remove_cvref_t<Ps>>() && ...) && detail::require_travels<Reply>();
  }
  template <typename... As>
  static constexpr bool kTakes = [] {
    if constexpr (sizeof...(As) == sizeof...(Ps)) {
      return (std::is_convertible_v<As, typename DataParameter<std::remove_cvref_t<Ps>>::Sent> && ...);
    } else {
      return false;
    }
  }();
};

}  // namespace brant::detail
