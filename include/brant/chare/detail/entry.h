#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#include "brant/chare/chare.h"
#include "brant/chare/detail/core.h"
#include "brant/chare/detail/running.h"
#include "brant/chare/device.h"
#include "brant/core/task.h"
#include "brant/core/task_driver.h"
#include "brant/ops/lane/parameters.h"

namespace brant::detail {

template <typename R, typename... Ps>
struct MethodShape : ParameterShape<R, Ps...> {
  using typename ParameterShape<R, Ps...>::Arguments;
  using PostArguments = std::tuple<typename DataParameter<std::remove_cvref_t<Ps>>::Meta...>;
  static_assert(ParameterShape<R, Ps...>::kData <= kDataMax,
                "brant: an entry method has at most 8 parameters DeviceData and HostData");
  static constexpr bool kDataByReference =
      ((!DataParameter<std::remove_cvref_t<Ps>>::is_data || std::is_lvalue_reference_v<Ps>) && ...);

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
  /// False: the compiler has said why.
  static constexpr bool kUsable = std::is_constructible_v<C, Args...> && (require_travels<Args>() && ...);

  static ChareBase* construct(ReadArchive& archive) {
    if constexpr (kUsable) {
      std::tuple<Args...> arguments;
      std::apply([&](auto&... values) { archive(values...); }, arguments);
      return std::apply([](auto&... values) -> ChareBase* { return new C(std::move(values)...); }, arguments);
    }
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

template <typename T>
void read_or_land(ReadArchive& archive, T& value, const Invocation& invocation, std::size_t& index) {
  if constexpr (DataParameter<T>::is_data) {
    value.land(invocation, index++);
  } else {
    archive(value);
  }
}

/// The post entry of a method, if its class has one.
template <typename C, auto Method, typename Arguments>
struct PostEntryOf;
template <typename C, auto Method, typename... Ts>
struct PostEntryOf<C, Method, std::tuple<Ts...>> {
  static constexpr std::size_t kData = (std::size_t{0} + ... + (std::is_same_v<Ts, DeviceMeta> ? 1 : 0));
  using Landings = std::array<Landing, kData>;
  using Buffers = std::array<Buffer, kData>;

  template <typename... As>
  static constexpr bool kTakes = requires(C& object, As&... values) { object.post(Post<Method>{}, values...); };
  template <std::size_t... I>
  static constexpr bool takes_count(std::index_sequence<I...>) noexcept {
    return kTakes<std::conditional_t<I + 1 != 0, const Anything, void>...>;
  }
  template <std::size_t... Counts>
  static constexpr bool takes_something(std::index_sequence<Counts...>) noexcept {
    return (takes_count(std::make_index_sequence<Counts>{}) || ...);
  }

  static void call(ChareBase& target, ReadArchive& archive, const DeviceMeta* metas, Landing* landings) {
    std::tuple<Ts...> arguments{};
    archive.take(sizeof(DataBlock<kData>));
    std::size_t index = 0;
    const auto fill = [&](auto& value) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, DeviceMeta>) {
        value = metas[index++];
      } else {
        archive(value);
      }
    };
    auto& object = static_cast<C&>(target);
    std::apply(
        [&](auto&... values) {
          (fill(values), ...);
          using Result = decltype(object.post(Post<Method>{}, std::as_const(values)...));
          if constexpr (kData == 1 && std::is_convertible_v<Result, Landing>) {
            landings[0] = object.post(Post<Method>{}, std::as_const(values)...);
          } else {
            constexpr bool kPlain = std::is_convertible_v<Result, Buffers>;
            static_assert(
                kPlain || std::is_convertible_v<Result, Landings>,
                "brant: a post entry returns a brant::Buffer or a brant::Landing, or std::array<brant::Buffer, "
                "N> (std::array<brant::Landing, N>) for N data parameters");
            const std::conditional_t<kPlain, Buffers, Landings> all =
                object.post(Post<Method>{}, std::as_const(values)...);
            std::copy(all.begin(), all.end(), landings);
          }
        },
        arguments);
  }

  static constexpr auto find() noexcept -> decltype(&call) {
    if constexpr (kTakes<const Ts...>) {
      return &call;
    } else {
      static_assert(!takes_something(std::make_index_sequence<sizeof...(Ts) + 3>{}),
                    "brant: the post entry takes other parameters than its method: post(Post<&Class::method>, ...) has "
                    "the method's parameters, with const DeviceMeta& in place of each DeviceData or HostData");
      return nullptr;
    }
  }
};

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

  /// Its arguments and its result can go by message. False: the compiler has said why.
  static constexpr bool kTravels = Traits::kNoMutableReference && Traits::kNoPointer && Traits::require_travels();

  /// False: the compiler has said why.
  template <typename... As>
  static constexpr bool require_fitting() noexcept {
    static_assert(Traits::template kTakes<As...>,
                  "brant: the arguments do not fit the entry method: their number differs, or one cannot be converted");
    return kTravels && Traits::template kTakes<As...>;
  }

  static void invoke(ChareBase& target, ReadArchive& archive, Invocation& invocation) {
    if constexpr (kTravels) invoke_checked(target, archive, invocation);
  }

  static constexpr auto post() noexcept {
    if constexpr (Traits::kData == 0) {
      return nullptr;
    } else {
      return PostEntryOf<C, Method, typename Traits::PostArguments>::find();
    }
  }

  static inline constinit EntryInfo info{
      // constant: `AwaitedEntry` marks it while other statics are made
      {RegisteredKind::entry, name_hash("entry", type_name<C>(), value_name<Method>(), type_name<decltype(Method)>()),
       type_name<C>(), last_name(value_name<Method>()), type_name<decltype(Method)>()},
      &invoke,
      post()};
  static inline const bool enrolled = enroll(info);
  static const EntryInfo& get() noexcept {
    [[maybe_unused]] const bool* keep = &enrolled;
    static_cast<void>(ClassOf<C>::get());
    return info;
  }

 private:
  static void invoke_checked(ChareBase& target, ReadArchive& archive, Invocation& invocation) {
    typename Traits::Arguments arguments{};
    if constexpr (Traits::kData == 0) {
      std::apply([&](auto&... values) { archive(values...); }, arguments);
    } else {
      archive.take(sizeof(DataBlock<Traits::kData>));
      std::size_t index = 0;
      std::apply([&](auto&... values) { (read_or_land(archive, values, invocation, index), ...); }, arguments);
    }
    auto& object = static_cast<C&>(target);
    if constexpr (kIsTask<typename Traits::Result>) {
      drive<RunningTask>(invocation, Traits::call(object, Method, arguments));
    } else if constexpr (std::is_void_v<Reply>) {
      Traits::call(object, Method, arguments);
      if (invocation.is_asked()) answer(invocation);
    } else if (invocation.is_asked()) {
      answer(invocation, Traits::call(object, Method, arguments));
    } else {
      static_cast<void>(Traits::call(object, Method, arguments));
    }
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

/// Packs a call whose arguments travel in part as data apart from it, and posts it.
template <typename Parameters, typename Sent>
struct PostWithData;
template <typename... Ps, typename... Ts>
struct PostWithData<std::tuple<Ps...>, std::tuple<Ts...>> {
  template <typename P, typename T>
  using Given = std::conditional_t<DataParameter<P>::is_data, T, const T&>;
  static constexpr std::size_t kData = (std::size_t{0} + ... + (DataParameter<Ps>::is_data ? 1 : 0));

  template <typename Open>
  static void post(Core& core, const EntryInfo& entry, Open&& open, Given<Ps, Ts>... values) {
    DataSource found[kData];
    DataBlock<kData> block;
    std::size_t index = 0;
    (collect<Ps>(values, found, block, index), ...);
    DataSources sources(core, entry, found, block.meta, kData);
    block.header.place = sources.place();
    block.header.count = kData;
    SizeArchive size;
    size(block);
    (write_unless_data<Ps>(size, values), ...);
    Outgoing outgoing = open(size.size());
    WriteArchive write(outgoing.args);
    write(block);
    (write_unless_data<Ps>(write, values), ...);
    sources.hand_over(outgoing);
    detail::post(core, outgoing);
  }

 private:
  template <typename P, typename T>
  static void collect(T& value, DataSource* found, DataBlock<kData>& block, std::size_t& index) {
    if constexpr (DataParameter<P>::is_data) {
      block.meta[index].host_only = DataParameter<P>::host_only;
      found[index++] = std::move(value.source());
    }
  }
  template <typename P, typename Archive, typename T>
  static void write_unless_data(Archive& archive, const T& value) {
    if constexpr (!DataParameter<P>::is_data) archive(value);
  }
};

/// Packs and posts a call of an entry; `open(bytes)` makes its message.
template <typename Entry, typename Open, typename... As>
void post_call(Core& core, Open&& open, As&&... arguments) {
  using Traits = typename Entry::Traits;
  if constexpr (Traits::kData == 0) {
    Outgoing outgoing =
        PackAs<typename Traits::Arguments>::pack(std::forward<Open>(open), std::forward<As>(arguments)...);
    post(core, outgoing);
  } else {
    PostWithData<typename Traits::Arguments, typename Traits::Sent>::post(core, Entry::get(), std::forward<Open>(open),
                                                                          std::forward<As>(arguments)...);
  }
}

}  // namespace brant::detail
