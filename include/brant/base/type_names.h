#pragma once

#include <cstdint>
#include <string_view>

namespace brant::detail {

/// The name the compiler has for a type: "heat::Block".
template <typename T>
constexpr std::string_view type_name() noexcept {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::size_t begin = text.find("T = ") + 4;
  constexpr std::size_t semicolon = text.find("; std::string_view", begin);
  constexpr std::size_t end = semicolon == std::string_view::npos ? text.rfind(']') : semicolon;
  return text.substr(begin, end - begin);
}

/// The name of a function or member function: "heat::Block::halo".
template <auto Value>
constexpr std::string_view value_name() noexcept {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::size_t equals = text.find("Value = ") + 8;
  constexpr std::size_t begin = text[equals] == '&' ? equals + 1 : equals;
  constexpr std::size_t semicolon = text.find("; std::string_view", begin);
  constexpr std::size_t end = semicolon == std::string_view::npos ? text.rfind(']') : semicolon;
  return text.substr(begin, end - begin);
}

/// The part behind the last "::" that is not inside template arguments.
constexpr std::string_view last_name(std::string_view name) noexcept {
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 1;) {
    if (name[i] == '>') ++depth;
    if (name[i] == '<') --depth;
    if (depth == 0 && name[i] == ':' && name[i - 1] == ':') return name.substr(i + 1);
  }
  return name;
}

/// FNV-1a, 64 bit, over several parts with a separator.
template <typename... Parts>
constexpr std::uint64_t name_hash(Parts... parts) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](std::string_view part) {
    for (const char letter : part) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
    hash = (hash ^ 0xffu) * 0x100000001b3u;
  };
  (add(parts), ...);
  return hash;
}

}  // namespace brant::detail
