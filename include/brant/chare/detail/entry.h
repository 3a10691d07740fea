#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#include "brant/chare/chare.h"
#include "brant/chare/detail/core.h"
#include "brant/chare/detail/running.h"
#include "brant/core/task.h"

namespace brant::detail {

template <typename T>
inline constexpr bool kIsTask = false;
template <typename T>
inline constexpr bool kIsTask<Task<T>> = true;

/// What a caller's Future holds: the result of the method, or of the coroutine it is.
template <typename R>
struct ReplyOf {
  using type = std::remove_cvref_t<R>;
};
template <typename T>
struct ReplyOf<Task<T>> {
  using type = T;
};

template <typename R, typename... Ps>
struct MethodShape {
  using Result = R;
  using Reply = typename ReplyOf<R>::type;
  using Arguments = std::tuple<std::remove_cvref_t<Ps>...>;
  static constexpr std::size_t kCount = sizeof...(Ps);
  static constexpr bool kNoMutableReference =
      ((!std::is_lvalue_reference_v<Ps> || std::is_const_v<std::remove_reference_t<Ps>>) && ...);
  static constexpr bool kByValue = (!std::is_reference_v<Ps> && ...);
  static constexpr bool kNoPointer = (!std::is_pointer_v<std::remove_cvref_t<Ps>> && ...);
  template <typename... As>
  static constexpr bool kTakes = [] {
    if constexpr (sizeof...(As) == sizeof...(Ps)) {
      return (std::is_convertible_v<As, std::remove_cvref_t<Ps>> && ...);
    } else {
      return false;
    }
  }();

  template <typename Object, typename Method>
  static R call(Object& object, Method method, Arguments& arguments) {
    return std::apply([&](auto&... values) -> R { return (object.*method)(static_cast<Ps&&>(values)...); }, arguments);
  }
};
template <typename M>
struct MethodTraits;  // anything but a member function ends here
template <typename R, typename K, typename... Ps>
struct MethodTraits<R (K::*)(Ps...)> : MethodShape<R, Ps...> {
  using Class = K;
};
template <typename R, typename K, typename... Ps>
struct MethodTraits<R (K::*)(Ps...) const> : MethodShape<R, Ps...> {
  using Class = K;
};
template <typename R, typename K, typename... Ps>
struct MethodTraits<R (K::*)(Ps...) noexcept> : MethodShape<R, Ps...> {
  using Class = K;
};
template <typename R, typename K, typename... Ps>
struct MethodTraits<R (K::*)(Ps...) const noexcept> : MethodShape<R, Ps...> {
  using Class = K;
};

/// Measures, opens, writes: one pass over the values for the size, one for the bytes.
template <typename Open, typename... Ts>
Outgoing pack(Open&& open, const Ts&... values) {
  SizeArchive size;
  size(values...);
  Outgoing outgoing = open(size.size());
  WriteArchive write(outgoing.args);
  write(values...);
  return outgoing;
}

template <typename C>
struct ClassOf {
  using I = typename C::IndexType;
  static void destroy(ChareBase& object) noexcept { delete static_cast<C*>(&object); }
  static inline ClassInfo info{
      {RegisteredKind::chare_class, name_hash("class", type_name<C>()), type_name<C>(), "", ""},
      kDimensions<I>,
      sizeof(I),
      sizeof(C),
      &destroy};
  static inline const bool enrolled = enroll(info);
  static const ClassInfo& get() noexcept {
    static_assert(std::derived_from<C, Chare<C, I>>, "brant: a chare class derives from brant::Chare<Class, Index>");
    [[maybe_unused]] const bool* keep = &enrolled;  // the address is what makes the compiler run `enroll`
    return info;
  }
};

/// A constructor with given argument types.
template <typename C, typename... Args>
struct ConstructorOf {
  static_assert(std::is_constructible_v<C, Args...>,
                "brant: the class has no public constructor that takes these arguments");
  static ChareBase* construct(ReadArchive& archive) {
    std::tuple<Args...> arguments;
    std::apply([&](auto&... values) { archive(values...); }, arguments);
    return std::apply([](auto&... values) -> ChareBase* { return new C(std::move(values)...); }, arguments);
  }
  static inline ConstructorInfo info{
      {RegisteredKind::constructor, name_hash("constructor", type_name<C>(), type_name<std::tuple<Args...>>()),
       type_name<C>(), "(constructor)", type_name<std::tuple<Args...>>()},
      &construct};
  static inline const bool enrolled = enroll(info);
  static const ConstructorInfo& get() noexcept {
    [[maybe_unused]] const bool* keep = &enrolled;
    static_cast<void>(ClassOf<C>::get());
    return info;
  }
};

/// How a constructor argument travels: string literals as std::string, everything else as it is.
template <typename T>
using Stored =
    std::conditional_t<std::is_same_v<std::decay_t<T>, const char*> || std::is_same_v<std::decay_t<T>, char*>,
                       std::string, std::decay_t<T>>;

/// One entry method of one class.
template <typename C, auto Method>
struct EntryOf {
  static_assert(std::is_member_function_pointer_v<decltype(Method)>,
                "brant: name a member function of the chare: call<&Block::halo>(...)");
  using Traits = MethodTraits<decltype(Method)>;
  static_assert(std::derived_from<C, typename Traits::Class>, "brant: the method belongs to another class");
  static_assert(Traits::kNoMutableReference,
                "brant: an entry method takes its arguments by value or const reference: nothing travels back; return "
                "the result instead");
  static_assert(Traits::kNoPointer,
                "brant: an entry method takes no pointers: they mean nothing in another process. Use std::span<const "
                "T>, std::vector or a proxy");
  static_assert(!kIsTask<typename Traits::Result> || Traits::kByValue,
                "brant: an entry that is a coroutine takes its arguments by value: references would dangle when it "
                "waits (std::span<const T> is fine)");
  using Reply = typename Traits::Reply;

  template <typename... As>
  static constexpr void check_arguments() noexcept {
    static_assert(Traits::template kTakes<As...>,
                  "brant: the arguments do not fit the entry method: their number differs, or one cannot be converted");
  }

  static void invoke(ChareBase& target, ReadArchive& archive, Invocation& invocation) {
    typename Traits::Arguments arguments{};
    std::apply([&](auto&... values) { archive(values...); }, arguments);
    auto& object = static_cast<C&>(target);
    if constexpr (kIsTask<typename Traits::Result>) {
      drive(invocation, Traits::call(object, Method, arguments));
    } else if constexpr (std::is_void_v<Reply>) {
      Traits::call(object, Method, arguments);
      if (invocation.reply != 0) answer(invocation);
    } else if (invocation.reply != 0) {
      answer(invocation, Traits::call(object, Method, arguments));
    } else {
      static_cast<void>(Traits::call(object, Method, arguments));
    }
  }

  static inline constinit EntryInfo info{
      // constant: `AwaitedEntry` marks it while other statics are made
      {RegisteredKind::entry, name_hash("entry", type_name<C>(), value_name<Method>(), type_name<decltype(Method)>()),
       type_name<C>(), last_name(value_name<Method>()), type_name<decltype(Method)>()},
      &invoke};
  static inline const bool enrolled = enroll(info);
  static const EntryInfo& get() noexcept {
    [[maybe_unused]] const bool* keep = &enrolled;
    static_cast<void>(ClassOf<C>::get());
    return info;
  }
};

/// Gives every argument the type the method declares, once, and packs it.
template <typename Arguments>
struct PackAs;
template <typename... Ts>
struct PackAs<std::tuple<Ts...>> {
  template <typename Open>
  static Outgoing pack(Open&& open, const Ts&... values) {
    return detail::pack(std::forward<Open>(open), values...);
  }
};

}  // namespace brant::detail
