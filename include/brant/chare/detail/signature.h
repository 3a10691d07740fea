#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "brant/base/archive.h"
#include "brant/chare/array.h"
#include "brant/chare/device.h"

/// Types in words that another language reads: what stands in a message behind them are the bytes of the archive.
///
///     ? b h i q B H I Q f d F D   bool, integers of 1, 2, 4, 8 bytes (capital: without a sign), floats, complex
///     numbers s y                         text, bytes [T                          a count, and a run of T as they lie
///     in memory: vector, span of numbers lT {T mKV                   a count, and one after the other: other
///     containers, sets, maps #N:T (TT...) oT             std::array, pair and tuple, optional x XT a data argument:
///     DeviceData, HostData<T> P p                         a PythonArray, a PythonElement Aname; Ename; an Array, an
///     Element of the chare class that C++ calls so
namespace brant {

class PythonArray;
class PythonElement;

namespace detail {

template <typename T>
void add_signature(std::string& to);

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <typename T>
inline constexpr bool kIsNumber = std::is_enum_v<T> || std::is_integral_v<T> || std::is_same_v<T, float> ||
                                  std::is_same_v<T, double> || kIsComplex<T>;
/// Lies in memory as numbers do, without gaps.
template <typename T>
inline constexpr bool kIsRun = kIsNumber<T>;
template <typename T, std::size_t N>
inline constexpr bool kIsRun<std::array<T, N>> = kIsRun<T>;

template <typename C>
std::type_identity<C> chare_of_array(const Array<C>&);
template <typename T>
concept ArrayOfChares = requires(const T& value) { chare_of_array(value); };
template <typename T>
struct ChareOfElement;
template <typename C>
struct ChareOfElement<Element<C>> {
  using type = C;
};

template <typename T>
constexpr char number_letter() noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return '?';
  } else if constexpr (std::is_enum_v<T>) {
    return number_letter<std::underlying_type_t<T>>();
  } else if constexpr (std::is_integral_v<T>) {
    constexpr int place = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return (std::is_signed_v<T> ? "bhiq" : "BHIQ")[place];
  } else if constexpr (kIsComplex<T>) {
    return sizeof(T) == 8 ? 'F' : 'D';
  } else {
    return sizeof(T) == 4 ? 'f' : 'd';
  }
}

template <typename T>
struct DoesNotCross {
  static_assert(kNeverTrue<T>,
                "brant: a value of this type does not go between C++ and Python: use numbers, std::string, containers, "
                "std::array, pairs, tuples and optionals of these, DeviceData, HostData, or a proxy");
  static constexpr bool kSaid = true;
};

template <typename T>
void add_container_signature(std::string& to) {
  using Item = typename Readable<typename T::value_type>::type;
  constexpr bool run = kIsSpan<T> || (ContiguousContainer<T> && kCopies<SizeArchive, typename T::value_type>);
  if constexpr (std::is_same_v<Item, std::byte> && run) {
    to += 'y';
  } else if constexpr (run) {
    if constexpr (kIsRun<Item>) {
      to += '[';
      add_signature<Item>(to);
    } else {
      static_assert(DoesNotCross<T>::kSaid);
    }
  } else if constexpr (requires { typename T::mapped_type; }) {
    to += 'm';
    add_signature<typename T::key_type>(to);
    add_signature<typename T::mapped_type>(to);
  } else {
    to += Associative<T> ? '{' : 'l';
    add_signature<Item>(to);
  }
}

template <typename T>
struct AddTuple;
template <template <typename...> typename Several, typename... Ts>
struct AddTuple<Several<Ts...>> {
  static void add(std::string& to) {
    to += '(';
    (add_signature<Ts>(to), ...);
    to += ')';
  }
};

template <typename T>
struct HostItem;
template <typename T>
struct HostItem<HostData<T>> {
  using type = T;
};

template <typename T>
void add_signature(std::string& to) {
  if constexpr (std::is_same_v<T, DeviceData>) {
    to += 'x';
  } else if constexpr (DataParameter<T>::is_data) {
    static_assert(kIsNumber<typename HostItem<T>::type>, "brant: HostData of Python holds numbers");
    to += 'X';
    add_signature<typename HostItem<T>::type>(to);
  } else if constexpr (kIsNumber<T>) {
    to += number_letter<T>();
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
    to += 's';
  } else if constexpr (std::is_same_v<T, PythonArray> || std::is_same_v<T, PythonElement>) {
    to += std::is_same_v<T, PythonArray> ? 'P' : 'p';
  } else if constexpr (ArrayOfChares<T>) {
    to += 'A';
    to += type_name<typename decltype(chare_of_array(std::declval<const T&>()))::type>();
    to += ';';
  } else if constexpr (requires { typename ChareOfElement<T>::type; }) {
    to += 'E';
    to += type_name<typename ChareOfElement<T>::type>();
    to += ';';
  } else if constexpr (kIsTuple<T>) {
    AddTuple<T>::add(to);
  } else if constexpr (kIsOptional<T>) {
    to += 'o';
    add_signature<typename T::value_type>(to);
  } else if constexpr (kIsArray<T>) {
    to += '#' + std::to_string(std::tuple_size_v<T>) + ':';
    add_signature<typename T::value_type>(to);
  } else if constexpr (kIsSpan<T> || Sequence<T> || Associative<T>) {
    add_container_signature<T>(to);
  } else {
    static_assert(DoesNotCross<T>::kSaid);
  }
}

/// Made once. Of nothing, and of void, it is empty.
template <typename... Ts>
const std::string& signature_of() {
  static const std::string text = [] {
    std::string made;
    [[maybe_unused]] const auto add = [&made]<typename T>(std::type_identity<T>) {
      if constexpr (!std::is_void_v<T>) add_signature<T>(made);
    };
    (add(std::type_identity<Ts>{}), ...);
    return made;
  }();
  return text;
}

}  // namespace detail
}  // namespace brant
