#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "brant/base/api.h"

namespace brant {

class Chares;

/// How values become bytes and values again. A user type takes part with one member, which serves all three archives:
///
///     struct Particle {
///       double mass; std::vector<double> track;
///       void serialize(auto& archive) { archive(mass, track); }
///     };
///
/// Without one: trivially copyable types (not pointers), std::string, vector, array, deque, list, map, set and their
/// unordered forms, optional, variant, pair, tuple; `std::span<const T>` of trivially copyable T and
/// `std::string_view` are packed in place, and read in place: they look into the message and live as long as the entry
/// method or the called function runs (until its end, if it is a coroutine). Bytes go between processes of one binary:
/// no conversion.
///
/// `Archive::reading` tells the directions apart where that is needed.
class SizeArchive;
class WriteArchive;
class ReadArchive;

namespace detail {

template <typename T, typename Archive>
concept HasSerialize = requires(T& value, Archive& archive) { value.serialize(archive); };

template <typename T>
inline constexpr bool kIsSpan = false;
template <typename T, std::size_t N>
inline constexpr bool kIsSpan<std::span<T, N>> = true;
template <typename T>
inline constexpr bool kIsTuple = false;
template <typename... Ts>
inline constexpr bool kIsTuple<std::tuple<Ts...>> = true;
template <typename A, typename B>
inline constexpr bool kIsTuple<std::pair<A, B>> = true;
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsVariant = false;
template <typename... Ts>
inline constexpr bool kIsVariant<std::variant<Ts...>> = true;
template <typename T>
inline constexpr bool kIsArray = false;
template <typename T, std::size_t N>
inline constexpr bool kIsArray<std::array<T, N>> = true;

template <typename T>
concept PlainBytes =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_member_pointer_v<T> &&
    !std::is_reference_v<T> && !std::is_null_pointer_v<T> && !kIsSpan<T> && !std::is_same_v<T, std::string_view>;

/// vector and string: filled by one copy where the elements allow it.
template <typename T>
concept ContiguousContainer = requires(T& value) {
  typename T::value_type;
  value.resize(std::size_t{});
  { value.data() } -> std::same_as<typename T::value_type*>;
};
/// Containers that grow at the end.
template <typename T>
concept Sequence = requires(T& value, typename T::value_type item) {
  value.clear();
  value.push_back(std::move(item));
};
/// Sets and maps.
template <typename T>
concept Associative = requires(T& value, typename T::value_type item) {
  typename T::key_type;
  value.clear();
  value.insert(std::move(item));
};

/// The element type while it is read: the pair of a map without its const.
template <typename T>
struct Readable {
  using type = T;
};
template <typename A, typename B>
struct Readable<std::pair<const A, B>> {
  using type = std::pair<A, B>;
};

BRANT_API [[noreturn]] void throw_short_message(std::size_t wanted, std::size_t left);
BRANT_API [[noreturn]] void throw_damaged_message(const char* what);

/// May be copied as bytes by this archive: plain, and without a member that knows better.
template <typename Archive, typename T>
inline constexpr bool kCopies = PlainBytes<T> && !HasSerialize<T, Archive> && !kIsArray<T>;
template <typename Archive, typename T, std::size_t N>
inline constexpr bool kCopies<Archive, std::array<T, N>> = kCopies<Archive, T>;

template <typename Archive, typename T>
void serialize_value(Archive& archive, T& value);

template <typename Archive, typename T>
void serialize_plain_run(Archive& archive, const T* data, std::size_t count) {
  archive.align(alignof(T) < 16 ? alignof(T) : 16);
  archive.bytes(data, count * sizeof(T));
}

/// False: the compiler has said why.
template <typename Archive, typename T>
constexpr bool require_span_travels() noexcept {
  constexpr bool constant = std::is_const_v<typename T::element_type>;
  constexpr bool dynamic = T::extent == std::dynamic_extent;
  constexpr bool copies = kCopies<Archive, typename T::value_type>;
  static_assert(constant, "brant: an argument std::span<T> must be std::span<const T>: it looks into the message");
  static_assert(dynamic, "brant: use std::span<const T> without a fixed extent");
  static_assert(copies,
                "brant: the elements of a std::span argument must be trivially copyable and no pointers; "
                "use std::vector for others");
  return constant && dynamic && copies;
}

template <typename Archive, typename T>
void serialize_view(Archive& archive, T& view) {
  using Item = std::remove_cvref_t<decltype(*view.data())>;
  if constexpr (kIsSpan<T>) static_cast<void>(require_span_travels<Archive, T>());
  auto count = static_cast<std::uint64_t>(view.size());
  serialize_value(archive, count);
  if constexpr (Archive::reading) {
    archive.align(alignof(Item) < 16 ? alignof(Item) : 16);
    view = T(static_cast<const Item*>(archive.take_items(count, sizeof(Item))), static_cast<std::size_t>(count));
  } else {
    serialize_plain_run(archive, view.data(), view.size());
  }
}

template <typename Archive, typename T>
void serialize_container(Archive& archive, T& value) {
  using Item = typename Readable<typename T::value_type>::type;
  auto count = static_cast<std::uint64_t>(value.size());
  serialize_value(archive, count);
  constexpr bool bulk = ContiguousContainer<T> && kCopies<Archive, typename T::value_type>;
  if constexpr (!Archive::reading) {
    if constexpr (bulk) {
      serialize_plain_run(archive, value.data(), value.size());
    } else {
      for (auto&& item : value) {
        using Kept = std::remove_cvref_t<decltype(*value.begin())>;
        if constexpr (std::is_same_v<Kept, typename T::value_type>) {
          serialize_value(archive, const_cast<Kept&>(static_cast<const Kept&>(item)));
        } else {  // std::vector<bool> gives no references
          Item plain = item;
          serialize_value(archive, plain);
        }
      }
    }
  } else if constexpr (bulk) {
    archive.align(alignof(Item) < 16 ? alignof(Item) : 16);
    const void* items = archive.take_items(count, sizeof(Item));
    value.resize(static_cast<std::size_t>(count));
    if (count != 0) std::memcpy(value.data(), items, static_cast<std::size_t>(count) * sizeof(Item));
  } else {
    value.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      static_assert(std::default_initializable<Item>,
                    "brant: elements of a serialised container need a default constructor: they are made empty and "
                    "then read");
      Item item{};
      serialize_value(archive, item);
      if constexpr (Associative<T>) {
        value.insert(std::move(item));
      } else {
        value.push_back(std::move(item));
      }
    }
  }
}

template <typename Archive, typename T>
void serialize_optional(Archive& archive, T& value) {
  auto present = static_cast<std::uint8_t>(value.has_value());
  serialize_value(archive, present);
  if constexpr (Archive::reading) {
    value.reset();
    if (present != 0) value.emplace();
  }
  if (value.has_value()) serialize_value(archive, *value);
}

template <typename Archive, typename... Ts>
void serialize_variant(Archive& archive, std::variant<Ts...>& value) {
  auto which = static_cast<std::uint8_t>(value.index());
  serialize_value(archive, which);
  if constexpr (Archive::reading) {
    if (which >= sizeof...(Ts)) throw_damaged_message("a std::variant of unknown alternative");
    std::size_t place = 0;
    const auto choose = [&]<typename Alternative>(std::type_identity<Alternative>) {
      if (place++ != which) return;
      Alternative alternative{};
      serialize_value(archive, alternative);
      value = std::move(alternative);
    };
    (choose(std::type_identity<Ts>{}), ...);
  } else {
    std::visit([&](auto& alternative) { serialize_value(archive, alternative); }, value);
  }
}

template <typename T>
inline constexpr bool kNeverTrue = false;

/// Whoever names it for a type is told why that type cannot travel.
template <typename T>
struct CannotTravel {
  static_assert(kNeverTrue<T>,
                "brant: a value of this type cannot travel in a message. Give the type a public member "
                "'void serialize(auto& archive) { archive(first, second); }', or pass something that has one; "
                "pointers and references never travel");
  static constexpr bool kSaid = true;
};
template <typename T>
struct CannotArrive {
  static_assert(kNeverTrue<T>,
                "brant: a value of this type cannot arrive: it is made empty and then read. Give the type a public "
                "constructor without arguments, or pass std::optional of it");
  static constexpr bool kSaid = true;
};

template <typename Archive, typename T>
void serialize_value(Archive& archive, T& value) {
  if constexpr (HasSerialize<T, Archive>) {
    value.serialize(archive);
  } else if constexpr (kIsSpan<T> || std::is_same_v<T, std::string_view>) {
    serialize_view(archive, value);
  } else if constexpr (kIsTuple<T>) {
    // The key of a map is const only while the map holds it.
    std::apply(
        [&](auto&... parts) {
          (serialize_value(archive, const_cast<std::remove_cvref_t<decltype(parts)>&>(parts)), ...);
        },
        value);
  } else if constexpr (kIsOptional<T>) {
    serialize_optional(archive, value);
  } else if constexpr (kIsVariant<T>) {
    serialize_variant(archive, value);
  } else if constexpr (kCopies<Archive, T>) {
    if constexpr (Archive::reading) {
      std::memcpy(static_cast<void*>(&value), archive.take(sizeof(T)), sizeof(T));
    } else {
      archive.bytes(&value, sizeof(T));
    }
  } else if constexpr (kIsArray<T>) {
    for (auto& item : value) serialize_value(archive, item);
  } else if constexpr (Sequence<T> || Associative<T>) {
    serialize_container(archive, value);
  } else {
    static_assert(CannotTravel<T>::kSaid);
  }
}

}  // namespace detail

/// Counts the bytes.
class SizeArchive {
 public:
  static constexpr bool reading = false;

  template <typename... Ts>
  void operator()(const Ts&... values) {
    (detail::serialize_value(*this, const_cast<Ts&>(values)), ...);  // a member `serialize` need not be const
  }
  void align(std::size_t to) noexcept { bytes_ = (bytes_ + to - 1) / to * to; }
  void bytes(const void*, std::size_t count) noexcept { bytes_ += count; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// Writes into a buffer of the size that SizeArchive counted, aligned to 16.
class WriteArchive {
 public:
  static constexpr bool reading = false;

  explicit WriteArchive(std::byte* to) noexcept : begin_(to), at_(to) {}
  template <typename... Ts>
  void operator()(const Ts&... values) {
    (detail::serialize_value(*this, const_cast<Ts&>(values)), ...);
  }
  void align(std::size_t to) noexcept {
    const auto offset = static_cast<std::size_t>(at_ - begin_);
    const std::size_t padded = (offset + to - 1) / to * to;
    for (; at_ != begin_ + padded; ++at_) *at_ = std::byte{0};  // nothing uninitialised leaves the process
  }
  void bytes(const void* from, std::size_t count) noexcept {
    if (count != 0) std::memcpy(at_, from, count);
    at_ += count;
  }

 private:
  std::byte* begin_;
  std::byte* at_;
};

/// Reads what WriteArchive wrote. Throws Error(invalid_argument) past the end.
class ReadArchive {
 public:
  static constexpr bool reading = true;

  ReadArchive(const std::byte* from, std::size_t bytes) noexcept : ReadArchive(nullptr, from, bytes) {}
  ReadArchive(Chares* chares, const std::byte* from, std::size_t bytes) noexcept
      : chares_(chares), begin_(from), at_(from), end_(from + bytes) {}
  template <typename... Ts>
  void operator()(Ts&... values) {
    (detail::serialize_value(*this, values), ...);
  }
  void align(std::size_t to) {
    const auto offset = static_cast<std::size_t>(at_ - begin_);
    take((offset + to - 1) / to * to - offset);
  }
  const void* take(std::size_t count) {
    if (count > static_cast<std::size_t>(end_ - at_)) [[unlikely]]
      detail::throw_short_message(count, static_cast<std::size_t>(end_ - at_));
    return std::exchange(at_, at_ + count);
  }
  const void* take_items(std::uint64_t count, std::size_t item_bytes) {
    const auto left = static_cast<std::size_t>(end_ - at_);
    if (count > left / item_bytes) [[unlikely]]
      detail::throw_short_message(static_cast<std::size_t>(count), left);
    return take(static_cast<std::size_t>(count) * item_bytes);
  }
  /// Where proxies of chares come to life again; null in messages that are not of chares.
  [[nodiscard]] Chares* chares() const noexcept { return chares_; }

 private:
  Chares* chares_;
  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
};

namespace detail {

/// The innermost part of T that cannot travel, as std::type_identity; of void if all of it can.
template <typename T>
constexpr auto stranger_in() noexcept;

template <typename T>
inline constexpr bool kIsStranger = !std::is_void_v<typename decltype(stranger_in<T>())::type>;

constexpr std::type_identity<void> first_stranger() noexcept { return {}; }
template <typename T, typename... Ts>
constexpr auto first_stranger(std::type_identity<T>, Ts... others) noexcept {
  if constexpr (kIsStranger<std::remove_const_t<T>>) {
    return stranger_in<std::remove_const_t<T>>();
  } else {
    return first_stranger(others...);
  }
}
template <template <typename...> typename Several, typename... Ts>
constexpr auto first_stranger_of(std::type_identity<Several<Ts...>>) noexcept {
  return first_stranger(std::type_identity<Ts>{}...);
}

template <typename T>
constexpr auto stranger_in() noexcept {
  if constexpr (HasSerialize<T, SizeArchive> || PlainBytes<T> || kIsSpan<T> || std::is_same_v<T, std::string_view>) {
    return std::type_identity<void>{};
  } else if constexpr (kIsTuple<T> || kIsVariant<T>) {
    return first_stranger_of(std::type_identity<T>{});
  } else if constexpr (kIsOptional<T> || kIsArray<T> || Sequence<T> || Associative<T>) {
    using Item = typename Readable<typename T::value_type>::type;
    if constexpr (std::is_same_v<Item, T>) {
      return std::type_identity<void>{};
    } else {
      return stranger_in<Item>();
    }
  } else {
    return std::type_identity<T>{};
  }
}

/// Can be an argument or a result. If not, the compiler says so in one sentence, and names the part that is to blame;
/// what would only repeat that is then left out.
template <typename T>
constexpr bool require_travels() noexcept {
  if constexpr (std::is_void_v<T>) {
    return true;
  } else if constexpr (kIsSpan<T>) {
    return require_span_travels<SizeArchive, T>();
  } else if constexpr (kIsStranger<T>) {
    return !CannotTravel<typename decltype(stranger_in<T>())::type>::kSaid;
  } else if constexpr (!std::default_initializable<T>) {
    return !CannotArrive<T>::kSaid;
  } else {
    return true;
  }
}

}  // namespace detail
}  // namespace brant
