#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "brant/chare/detail/entry.h"
#include "brant/chare/detail/mail.h"

namespace brant {

/// The arguments of a call that a `when` took: `auto [step, face] = co_await when<&Block::halo>(step);`. Spans and
/// string views look into the message, which this object holds. Movable; must not outlive the chare's program.
template <typename... Ts>
class Received {
 public:
  Received() = default;

  template <std::size_t I>
  auto& get() & noexcept {
    return std::get<I>(values_);
  }
  template <std::size_t I>
  const auto& get() const& noexcept {
    return std::get<I>(values_);
  }
  template <std::size_t I>
  auto&& get() && noexcept {
    return std::get<I>(std::move(values_));
  }

 private:
  template <typename C, auto Method, typename... Match>
  friend class When;

  std::tuple<Ts...> values_{};
  detail::MessageHold hold_;
};

namespace detail {

template <typename Arguments>
struct ReceivedOf;
template <typename... Ts>
struct ReceivedOf<std::tuple<Ts...>> {
  using type = Received<Ts...>;
};

/// The parameters that travel in the message itself, not as data beside it: their types, and their places among all.
template <typename Arguments>
struct MessageArguments;
template <typename... Ts>
struct MessageArguments<std::tuple<Ts...>> {
  static constexpr std::size_t kCount = (std::size_t{0} + ... + (DataParameter<Ts>::is_data ? 0 : 1));
  using type = decltype(std::tuple_cat(
      std::declval<std::conditional_t<DataParameter<Ts>::is_data, std::tuple<>, std::tuple<Ts>>>()...));
  static constexpr auto kPlaces = [] {
    std::array<std::size_t, kCount> places{};
    std::size_t found = 0;
    std::size_t place = 0;
    ((DataParameter<Ts>::is_data ? ++place : (places[found++] = place++)), ...);
    return places;
  }();
};

/// How a reference value is kept while the coroutine waits: views own their text.
template <typename T>
using KeptReference = std::conditional_t<std::is_same_v<T, std::string_view>, std::string, T>;

template <typename Arguments, typename... Match>
inline constexpr bool kIsPredicate = false;
template <typename... Ts, typename Match>
inline constexpr bool kIsPredicate<std::tuple<Ts...>, Match> = std::is_invocable_r_v<bool, const Match&, const Ts&...>;

template <typename Arguments, typename Places>
struct LeadingArguments;
template <typename... Ts, std::size_t... I>
struct LeadingArguments<std::tuple<Ts...>, std::index_sequence<I...>> {
  using type = std::tuple<KeptReference<std::tuple_element_t<I, std::tuple<Ts...>>>...>;
};

/// Naming an entry in a `when` anywhere in the program makes it one whose calls are kept until they are awaited.
template <typename C, auto Method>
struct AwaitedEntry {
  static bool mark() noexcept { return EntryOf<C, Method>::info.awaited = true; }
  static inline const bool marked = mark();
};

template <typename T>
std::string reference_text(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_arithmetic_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_convertible_v<const T&, std::string>) {
    return '"' + std::string(value).substr(0, 40) + '"';
  } else {
    return "...";
  }
}

}  // namespace detail

/// What `Chare::when` gives: awaited once, on the chare's worker. Destroying it while it waits withdraws it.
template <typename C, auto Method, typename... Match>
class [[nodiscard]] When : private detail::WhenWaiter {
  using Entry = detail::EntryOf<C, Method>;
  using Arguments = typename Entry::Traits::Arguments;
  using InMessage = detail::MessageArguments<Arguments>;
  static_assert(!detail::kIsTask<typename Entry::Traits::Result>,
                "brant: an awaited entry is no coroutine: its body runs to its end before the waiter resumes");
  static_assert(Entry::Traits::kDataByReference,
                "brant: an awaited entry takes DeviceData and HostData by const reference: its waiter keeps them");
  static constexpr bool kPredicate = detail::kIsPredicate<Arguments, Match...>;
  static_assert(kPredicate || sizeof...(Match) <= InMessage::kCount,
                "brant: more reference values than the entry has arguments (DeviceData and HostData do not count)");

 public:
  using Result = typename detail::ReceivedOf<Arguments>::type;

  template <typename... Ms>
  explicit When(ChareBase& chare_, Ms&&... match) : match_(convert(std::forward<Ms>(match)...)) {
    static_cast<void>(&detail::AwaitedEntry<C, Method>::marked);
    chare = &chare_;
    entry = &Entry::get();
    detail::WhenWaiter::take = &When::take_call;
    detail::WhenWaiter::describe = &When::text;
  }
  /// Only before it waits.
  When(When&& other) noexcept : match_(std::move(other.match_)) {
    chare = other.chare;
    entry = other.entry;
    detail::WhenWaiter::take = &When::take_call;
    detail::WhenWaiter::describe = &When::text;
  }
  When& operator=(When&&) = delete;
  ~When() { detail::leave(*this); }

  auto operator co_await() noexcept { return Awaiter{*this}; }

  // --- for when_all
  bool start(detail::WhenJoin& with) {
    if (detail::take_kept(*this)) return true;
    join = &with;
    detail::enlist(*this);
    return false;
  }
  /// Throws what the predicate threw.
  Result result() {
    if (failure) [[unlikely]]
      std::rethrow_exception(failure);
    return std::move(result_);
  }
  void withdraw() noexcept { detail::leave(*this); }

 private:
  using Kept = typename std::conditional_t<
      kPredicate, std::type_identity<std::tuple<Match...>>,
      detail::LeadingArguments<typename InMessage::type,
                               std::make_index_sequence<kPredicate ? 0 : sizeof...(Match)>>>::type;

  // An object of its own: g++ 12 awaits a *copy* of an awaiter that was captured by reference.
  struct Awaiter {
    When& when;
    detail::Awaiting waiting = {};
    // Who is destroyed while it waits must not take a call away from those that come after.
    ~Awaiter() {
      if (waiting.waits()) detail::leave(when);
    }
    bool await_ready() const { return detail::take_kept(when); }
    void await_suspend(std::coroutine_handle<> waiter) {
      when.alone_.remaining = 1;
      when.alone_.waiter.admit(waiting, waiter);
      when.join = &when.alone_;
      detail::enlist(when);
    }
    Result await_resume() const { return when.result(); }
  };

  template <typename... Ms>
  static Kept convert(Ms&&... match) {
    if constexpr (kPredicate) {
      return Kept(std::forward<Ms>(match)...);
    } else {
      return convert_places(std::make_index_sequence<sizeof...(Ms)>{}, std::forward<Ms>(match)...);
    }
  }
  template <std::size_t... I, typename... Ms>
  static Kept convert_places(std::index_sequence<I...>, Ms&&... match) {
    return Kept(static_cast<std::tuple_element_t<I, Kept>>(std::forward<Ms>(match))...);
  }

  /// The leading arguments are read and compared first: most calls that do not match cost no more.
  template <std::size_t... I>
  bool matches(ReadArchive& archive, std::index_sequence<I...>) {
    return ((archive(in_message<I>()), in_message<I>() == std::get<I>(match_)) && ...);
  }
  template <std::size_t First, std::size_t... I>
  void read_from(ReadArchive& archive, std::index_sequence<I...>) {
    (archive(in_message<First + I>()), ...);
  }
  template <std::size_t I>
  auto& in_message() noexcept {
    return std::get<InMessage::kPlaces[I]>(result_.values_);
  }
  /// `use(argument, index)` of each DeviceData and HostData.
  template <typename Use>
  void for_each_data(Use&& use) {
    std::size_t index = 0;
    const auto visit = [&]<typename T>(T& value) {
      if constexpr (detail::DataParameter<T>::is_data) use(value, index++);
    };
    std::apply([&](auto&... values) { (visit(values), ...); }, result_.values_);
  }

  /// An exception of the predicate is the waiter's, not the call's.
  bool agrees() noexcept {
    try {
      return std::apply(std::get<0>(match_), std::as_const(result_.values_));
    } catch (...) {
      failure = std::current_exception();
      return false;
    }
  }

  static bool take_call(detail::WhenWaiter& waiter, ReadArchive archive, const detail::Invocation& invocation) {
    auto& self = static_cast<When&>(waiter);
    constexpr std::size_t kData = Entry::Traits::kData;
    if constexpr (kData != 0) archive.take(sizeof(detail::DataBlock<kData>));
    if constexpr (kPredicate) {
      self.template read_from<0>(archive, std::make_index_sequence<InMessage::kCount>{});
      self.for_each_data([&](auto& data, std::size_t index) { data.look(invocation, index); });
      if (!self.agrees()) return false;
    } else {
      constexpr std::size_t kMatched = sizeof...(Match);
      if (!self.matches(archive, std::make_index_sequence<kMatched>{})) return false;
      self.template read_from<kMatched>(archive, std::make_index_sequence<InMessage::kCount - kMatched>{});
    }
    self.for_each_data([&](auto& data, std::size_t index) { data.land(invocation, index); });
    self.run_body(invocation);
    self.result_.hold_ = detail::MessageHold(invocation);
    return true;
  }

  /// The waiter keeps the arguments, so the body gets them as const: by-value parameters are copies, and data, which
  /// cannot be copied, is taken by reference.
  void run_body(const detail::Invocation& invocation) {
    auto& object = static_cast<C&>(*chare);
    const auto body = [&]() -> typename Entry::Traits::Result {
      return std::apply([&](const auto&... values) { return (object.*Method)(values...); }, result_.values_);
    };
    if constexpr (std::is_void_v<typename Entry::Reply>) {
      body();
      if (invocation.reply != 0) detail::answer(invocation);
    } else if (invocation.reply != 0) {
      detail::answer(invocation, body());
    } else {
      static_cast<void>(body());
    }
  }

  static std::string text(const detail::WhenWaiter& waiter) {
    const auto& self = static_cast<const When&>(waiter);
    std::string text(waiter.entry->name);
    text += '(';
    if constexpr (kPredicate) {
      text += "a predicate";
    } else {
      const auto add = [&text](const auto& value) {
        if (text.back() != '(') text += ", ";
        text += detail::reference_text(value);
      };
      std::apply([&](const auto&... values) { (add(values), ...); }, self.match_);
    }
    return text + ')';
  }

  Kept match_;
  Result result_;
  detail::WhenJoin alone_;  ///< When it is awaited by itself.
};

template <typename Derived, ElementIndex I>
template <auto Method, typename... Match>
When<Derived, Method, std::decay_t<Match>...> Chare<Derived, I>::when(Match&&... match) {
  return When<Derived, Method, std::decay_t<Match>...>(*this, std::forward<Match>(match)...);
}

namespace detail {

template <typename... Whens>
class [[nodiscard]] AllWhens {
 public:
  explicit AllWhens(Whens&&... whens) : whens_(std::move(whens)...) {}
  auto operator co_await() noexcept { return Awaiter{*this}; }

 private:
  struct Awaiter {
    AllWhens& all;
    Awaiting waiting = {};
    ~Awaiter() {
      if (waiting.waits()) std::apply([](auto&... when) { (when.withdraw(), ...); }, all.whens_);
    }
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiter) {
      WhenJoin& join = all.join_;
      join.waiter.admit(waiting, waiter);
      join.remaining = sizeof...(Whens) + 1;  // one is held by this function: none may resume it before it is suspended
      std::apply([&join](auto&... when) { ((join.remaining -= when.start(join) ? 1 : 0), ...); }, all.whens_);
      return --join.remaining != 0;
    }
    auto await_resume() const {
      return std::apply([](auto&... when) { return std::make_tuple(when.result()...); }, all.whens_);
    }
  };

  std::tuple<Whens...> whens_;
  WhenJoin join_;
};

}  // namespace detail

/// Awaits several whens at once: `auto [north, south] = co_await when_all(when<&B::north>(step),
/// when<&B::south>(step))` gives their arguments in this order when all have come, in whatever order. Each call is
/// taken (its body runs) as it comes.
template <typename... Whens>
  requires(sizeof...(Whens) > 0 && (requires { typename Whens::Result; } && ...))
auto when_all(Whens... whens) {
  return detail::AllWhens<Whens...>(std::move(whens)...);
}

}  // namespace brant

template <typename... Ts>
struct std::tuple_size<brant::Received<Ts...>> : std::integral_constant<std::size_t, sizeof...(Ts)> {};
template <std::size_t I, typename... Ts>
struct std::tuple_element<I, brant::Received<Ts...>> {
  using type = std::tuple_element_t<I, std::tuple<Ts...>>;
};
