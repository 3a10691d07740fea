#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace brant {

/// False: the word is not a number of this type, and nothing else.
template <typename Number>
bool read_number(std::string_view word, Number& number) noexcept {
  const auto [rest, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
  return fault == std::errc{} && rest == word.data() + word.size();
}

}  // namespace brant
