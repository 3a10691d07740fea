#pragma once

#include <string_view>

#include <fmt/format.h>

/// Lines for people, on standard error: `brant[rank] warning: text`. BRANT_LOG=error|warn|info|debug selects; default
/// warn. The place that decides an error logs it once, with the exact cause; others pass the status on. Not for the
/// data path.
namespace brant::log {

enum class Level { error, warn, info, debug };

/// Names this process in the lines that follow. Before it is called, the pid is used.
void set_rank(int rank) noexcept;
bool enabled(Level level) noexcept;
void write(Level level, std::string_view text) noexcept;

template <typename... Args>
void line(Level level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  if (!enabled(level)) return;
  try {
    write(level, fmt::format(format, std::forward<Args>(args)...));
  } catch (...) {
    write(level, "(a log line could not be formatted)");
  }
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) noexcept {
  line(Level::error, format, std::forward<Args>(args)...);
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) noexcept {
  line(Level::warn, format, std::forward<Args>(args)...);
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) noexcept {
  line(Level::info, format, std::forward<Args>(args)...);
}
template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) noexcept {
  line(Level::debug, format, std::forward<Args>(args)...);
}

}  // namespace brant::log
