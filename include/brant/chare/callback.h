#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "brant/chare/array.h"
#include "brant/chare/detail/gathering.h"
#include "brant/chare/section.h"

namespace brant {

namespace detail {

template <typename T>
struct WireForm {
  using type = T;
};
template <typename T>
struct WireForm<std::span<const T>> {
  using type = std::vector<T>;
};
template <>
struct WireForm<std::string_view> {
  using type = std::string;
};

/// A value of A can be read as a B: the same type, or a view of it.
template <typename A, typename B>
inline constexpr bool kSameOnTheWire = std::is_same_v<typename WireForm<A>::type, typename WireForm<B>::type>;

template <typename From, typename To>
inline constexpr bool kCallbackConverts = false;
template <typename... As, typename... Bs>
inline constexpr bool kCallbackConverts<std::tuple<As...>, std::tuple<Bs...>> = [] {
  if constexpr (sizeof...(As) == sizeof...(Bs)) {
    return (kSameOnTheWire<As, Bs> && ...);
  } else {
    return false;
  }
}();

/// What the future of a callback holds.
template <typename... Args>
struct CallbackValue {
  using type = std::tuple<Args...>;
};
template <typename T>
struct CallbackValue<T> {
  using type = T;
};
template <>
struct CallbackValue<> {
  using type = void;
};

template <typename Arguments>
struct CallbackFor;

}  // namespace detail

/// Something to be done with values that come later: call it with them. A value: store it, send it as an argument, call
/// it from any rank, any number of times (a future takes the first).
///
///     Callback<double> done = callback<&Block::total>(blocks[0]);        // an entry of an element,
///     Callback<double> all = callback<&Block::total>(blocks);            // of all elements, or of a section
///     auto [to, sum] = future_callback<double>(chares);                  // a future on this rank
///     auto print = Callback<double>::function(chares, [](double x) { std::printf("%g\n", x); });  // runs here
///     auto end = Callback<>::exit(chares, 3);  Callback<double> none;         // ends the program; ignores
///
/// Calling it is a message, as an entry's call is, with the same bounds and errors. Worker's thread.
template <typename... Args>
class Callback : private detail::NotBytes {
 public:
  /// Ignores what it is called with.
  Callback() noexcept = default;
  Callback(detail::Core* core, const detail::CallbackTarget& target) noexcept : core_(core), target_(target) {}
  /// A callback whose arguments look the same in a message: `std::span<const T>` for `std::vector<T>`.
  template <typename... Others>
    requires(!std::is_same_v<std::tuple<Others...>, std::tuple<Args...>> &&
             detail::kCallbackConverts<std::tuple<Others...>, std::tuple<Args...>>)
  Callback(const Callback<Others...>& other) noexcept  // NOLINT(google-explicit-constructor)
      : core_(other.core()), target_(other.target()) {}

  /// Ends the program, as `Chares::exit` does, from whatever rank.
  static Callback exit(Chares& chares, int code = 0) noexcept {
    detail::CallbackTarget target;
    target.kind = detail::CallbackKind::exit;
    target.number = static_cast<std::uint32_t>(code);
    return Callback(&chares.core(), target);
  }
  /// Runs `function(values...)` on this rank, from the scheduler. Kept until `destroy`, or until the program ends; at
  /// most a million at once. An exception ends the job with an error.
  template <typename Function>
  static Callback function(Chares& chares, Function function) {
    static_assert(std::is_invocable_v<Function&, Args...>,
                  "brant: the function of a callback takes the callback's arguments");
    const auto run = [function](ReadArchive& archive) mutable {
      std::tuple<Args...> values{};
      std::apply([&](auto&... each) { archive(each...); }, values);
      std::apply(function, std::move(values));
    };
    return Callback(&chares.core(), detail::keep_function(chares.core(), run));
  }

  void operator()(const Args&... values) const {
    if (target_.kind == detail::CallbackKind::ignore) return;
    SizeArchive size;
    size(values...);
    detail::Outgoing outgoing = detail::open_callback(*core_, target_, size.size());
    if (outgoing.message == nullptr) return;
    WriteArchive write(outgoing.args);
    write(values...);
    detail::post(*core_, outgoing);
  }

  /// Gives back what stands behind it, from whatever rank, once for all copies. A function is destroyed, after the
  /// calls made before from here; a later call of it, or a second destroy, ends the job with an error. A future without
  /// a value fails with `canceled`. Behind other callbacks stands nothing. Costs a message.
  void destroy() const {
    if (core_ != nullptr) detail::destroy_callback(*core_, target_);
  }

  /// Two callbacks that do the same thing.
  bool operator==(const Callback& other) const noexcept { return target_ == other.target_; }
  [[nodiscard]] const detail::CallbackTarget& target() const noexcept { return target_; }
  [[nodiscard]] detail::Core* core() const noexcept { return core_; }

  void serialize(auto& archive) {
    archive(target_);
    if constexpr (std::remove_reference_t<decltype(archive)>::reading) core_ = &archive.chares()->core();
  }

 private:
  detail::Core* core_ = nullptr;
  detail::CallbackTarget target_;
};

namespace detail {
template <typename... Ts>
struct CallbackFor<std::tuple<Ts...>> {
  using type = Callback<Ts...>;
};

/// `target` says which chares; the method, what of them and with which arguments.
template <auto Method, typename C>
auto entry_callback(Core& core, CallbackTarget target) {
  using Entry = EntryOf<C, Method>;
  target.entry = number_of(Entry::get());
  return typename CallbackFor<typename Entry::Traits::Arguments>::type(&core, target);
}
}  // namespace detail

/// An entry of one element as a callback of its arguments.
template <auto Method, typename C>
auto callback(const Element<C>& element) {
  detail::CallbackTarget target;
  target.kind = detail::CallbackKind::element;
  target.collection = element.target().collection;
  target.key = element.target().key;
  return detail::entry_callback<Method, C>(element.core(), target);
}
/// An entry of all elements.
template <auto Method, typename C>
auto callback(const Array<C>& array) {
  detail::CallbackTarget target;
  target.kind = detail::CallbackKind::array;
  target.collection = array.collection();
  return detail::entry_callback<Method, C>(array.core(), target);
}
/// An entry of the members of a section.
template <auto Method, typename C>
auto callback(const Section<C>& section) {
  detail::CallbackTarget target;
  target.kind = detail::CallbackKind::section;
  target.collection = section.gathering().collection;
  target.section = section.gathering().section;
  return detail::entry_callback<Method, C>(section.core(), target);
}

/// A callback, and the future on this rank that gets its values (void for none, a tuple for several). Of several calls
/// the first counts.
template <typename... Args>
struct CallbackAndFuture {
  Callback<Args...> to;
  Future<typename detail::CallbackValue<Args...>::type> future;
};
template <typename... Args>
CallbackAndFuture<Args...> future_callback(Chares& chares) {
  Promise<typename detail::CallbackValue<Args...>::type> promise;
  auto future = promise.future();
  detail::CallbackTarget target;
  target.kind = detail::CallbackKind::future;
  target.rank = chares.rank().value;
  target.number = detail::expect_callback(chares.core(), detail::waiting_for(std::move(promise)));
  return {Callback<Args...>(&chares.core(), target), std::move(future)};
}

}  // namespace brant
