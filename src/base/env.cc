#include "base/env.h"

#include <charconv>
#include <cstdlib>

namespace brant {

std::string_view env(const char* name) noexcept {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

std::optional<std::int64_t> env_int(const char* name) noexcept {
  const std::string_view text = env(name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool env_bool(const char* name, bool fallback) noexcept {
  const std::string_view text = env(name);
  for (const char* yes : {"1", "y", "yes", "on", "true"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"0", "n", "no", "off", "false"}) {
    if (text == no) return false;
  }
  return fallback;
}

}  // namespace brant
