#include "base/env.h"

#include <cstdlib>

#include <fmt/format.h>

#include "base/log.h"
#include "base/read_number.h"
#include "brant/base/status.h"

namespace brant {
namespace {

constexpr std::string_view kSwitchWords = "on, yes, true, y or 1, or off, no, false, n or 0";

/// Nothing if it is none of the words.
std::optional<bool> switch_of(std::string_view text) noexcept {
  for (const char* yes : {"1", "y", "yes", "on", "true"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"0", "n", "no", "off", "false"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

}  // namespace

std::string_view env(const char* name) noexcept {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

std::optional<std::int64_t> env_int(const char* name) noexcept {
  std::int64_t value = 0;
  if (!read_number(env(name), value)) return std::nullopt;
  return value;
}

std::int64_t env_int_in(const char* name, std::int64_t fallback, const EnvRange& range) {
  const std::string_view text = env(name);
  if (text.empty()) return fallback;
  const std::optional<std::int64_t> value = env_int(name);
  if (value && *value >= range.least && *value <= range.most) return *value;
  throw Error(Status::invalid_argument,
              fmt::format("{}={}: use whole {}, {} to {}", name, text, range.unit, range.least, range.most));
}

bool env_bool(const char* name, bool fallback) {
  const std::string_view text = env(name);
  if (text.empty()) return fallback;
  const std::optional<bool> value = switch_of(text);
  if (!value) throw Error(Status::invalid_argument, fmt::format("{}={}: use {}", name, text, kSwitchWords));
  return *value;
}

bool env_bool_or_warn(const char* name, bool fallback) noexcept {
  const std::string_view text = env(name);
  if (text.empty()) return fallback;
  const std::optional<bool> value = switch_of(text);
  if (!value) log::warn("{}={} is ignored: use {}", name, text, kSwitchWords);
  return value.value_or(fallback);
}

}  // namespace brant
