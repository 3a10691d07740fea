#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace brant {

/// The value of an environment variable, empty if unset. Valid until the environment is changed.
std::string_view env(const char* name) noexcept;

/// The value as a whole number, nothing if unset or not a number. For values that no user writes.
std::optional<std::int64_t> env_int(const char* name) noexcept;

/// What a variable takes, for `env_int_in`.
struct EnvRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::string_view unit;  ///< "milliseconds"; with what a special value means: "seconds (0: never)".
};

/// The value as a whole number of `range`, `fallback` if unset or empty. Throws invalid_argument, naming variable,
/// value and range, on everything else.
std::int64_t env_int_in(const char* name, std::int64_t fallback, const EnvRange& range);

/// "1", "y", "yes", "on", "true" are true; "0", "n", "no", "off", "false" are false; `fallback` if unset or empty.
/// Throws invalid_argument, naming variable and value, on everything else.
bool env_bool(const char* name, bool fallback);

/// The same where nothing may be thrown: everything else is `fallback`, with a warning.
bool env_bool_or_warn(const char* name, bool fallback) noexcept;

}  // namespace brant
