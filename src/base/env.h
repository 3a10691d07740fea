#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace brant {

/// The value of an environment variable, empty if unset. Valid until the environment is changed.
std::string_view env(const char* name) noexcept;

/// The value as a whole number, nothing if unset or not a number.
std::optional<std::int64_t> env_int(const char* name) noexcept;

/// "1", "y", "yes", "on", "true" are true; "0", "n", "no", "off", "false" are false; otherwise `fallback`.
bool env_bool(const char* name, bool fallback) noexcept;

}  // namespace brant
