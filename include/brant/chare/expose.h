#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "brant/base/api.h"
#include "brant/chare/detail/entry.h"
#include "brant/chare/detail/signature.h"

namespace brant {

namespace detail {

/// An entry that Python may call: what it is called with, and what it answers, as `signature_of` says it.
struct ExposedEntry {
  std::string name;
  const EntryInfo* entry = nullptr;
  std::string arguments;
  std::string answer;
};

/// A chare class that Python may use.
struct ExposedClass {
  std::string name;
  const ClassInfo* info = nullptr;
  const ConstructorInfo* constructor = nullptr;  ///< Null: Python makes none.
  std::string constructor_arguments;
  std::vector<ExposedEntry> entries;
};

/// A new line, which stays for ever. Called while libraries are opened: it throws nothing but bad_alloc.
BRANT_API ExposedClass& expose_class(std::string_view name, const ClassInfo& info);
/// Null for a name that nobody has exposed. Throws invalid_argument for one that two classes have.
BRANT_API const ExposedClass* find_exposed(std::string_view name);
/// By the name that C++ has for it; null if it is not exposed.
BRANT_API const ExposedClass* find_exposed_type(std::string_view type_name) noexcept;
BRANT_API std::vector<std::string> exposed_names();

}  // namespace detail

/// What `expose` gives: says which constructor and which entries of a chare class Python may use.
template <typename C>
class Exposing {
 public:
  explicit Exposing(detail::ExposedClass& line) noexcept : line_(line) {}

  /// The constructor that an array made by Python uses, by the types of its parameters. Of several the last counts.
  template <typename... Args>
  Exposing& constructor() {
    line_.constructor = &detail::ConstructorOf<C, Args...>::get();
    line_.constructor_arguments = detail::signature_of<Args...>();
    return *this;
  }

  /// An entry method, under its own name or another.
  template <auto Method>
  Exposing& entry(std::string_view name = detail::last_name(detail::value_name<Method>())) {
    using Entry = detail::EntryOf<C, Method>;
    line_.entries.push_back({std::string(name), &Entry::get(), arguments_of(Parameters<typename Entry::Traits>{}),
                             detail::signature_of<typename Entry::Reply>()});
    return *this;
  }

 private:
  template <typename Traits>
  using Parameters = std::type_identity<typename Traits::Arguments>;
  template <typename... Ts>
  static std::string arguments_of(std::type_identity<std::tuple<Ts...>>) {
    return detail::signature_of<Ts...>();
  }

  detail::ExposedClass& line_;
};

/// Lets Python use a chare class of C++. In a library that is linked with libbrant.so, at namespace scope:
///
///     class Block : public brant::Chare<Block> {
///      public:
///       explicit Block(double first);
///       void scale(double factor);
///       std::vector<double> halo(brant::DeviceData face, int step);
///     };
///     static const auto exposed = brant::expose<Block>("Block").constructor<double>().entry<&Block::scale>()
///                                     .entry<&Block::halo>();
///
/// In Python, in every process and before the first program of chares: `brant.load("./libblocks.so")`, then
/// `brant.cpp("Block").array(8, 1.5)[3].scale(2.0)`. Arguments and results are what `detail/signature.h` lists:
/// numbers, text, containers of these, DeviceData, HostData and proxies; another type is an error of the compiler.
/// Indices are `Index<1>` to `Index<6>`. Two classes must not have one name: who asks for it is told.
template <typename C>
Exposing<C> expose(std::string_view name) {
  static_assert(detail::kDimensions<typename C::IndexType> > 0, "brant: Python uses arrays of brant::Index<1..6>");
  return Exposing<C>(detail::expose_class(name, detail::ClassOf<C>::get()));
}

}  // namespace brant
