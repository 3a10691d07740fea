#include "base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

#include "base/env.h"

namespace brant::log {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"error", "warn", "info", "debug"};

Level level_from_environment() noexcept {
  const std::string_view wanted = env("BRANT_LOG");
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == wanted) return static_cast<Level>(i);
  }
  return Level::warn;
}

std::atomic<int> g_rank{-1};

}  // namespace

void set_rank(int rank) noexcept { g_rank.store(rank, std::memory_order_relaxed); }

bool enabled(Level level) noexcept {
  static const Level limit = level_from_environment();
  return level <= limit;
}

void write(Level level, std::string_view text) noexcept {
  try {
    const int rank = g_rank.load(std::memory_order_relaxed);
    const std::string who = rank >= 0 ? fmt::format("brant[{}]", rank) : fmt::format("brant[pid {}]", ::getpid());
    const std::string whole = fmt::format("{} {}: {}\n", who, kNames[static_cast<std::size_t>(level)], text);
    // One write call, so that lines of several processes do not mix.
    if (::write(STDERR_FILENO, whole.data(), whole.size()) < 0) return;
  } catch (...) {
    return;  // Out of memory while logging: nothing better to do than to go on.
  }
}

}  // namespace brant::log
