#include "brant/core/path.h"

#include <array>

#include <fmt/ranges.h>

namespace brant {
namespace {

constexpr std::array<std::string_view, kPathCount> kNames = {"auto",        "ucx",     "shm",   "staged",
                                                             "copy_engine", "courier", "kernel"};

}  // namespace

std::string_view path_name(Path path) noexcept {
  const auto index = static_cast<std::size_t>(path);
  return index < kNames.size() ? kNames[index] : "unknown";
}

bool path_from_name(std::string_view name, Path& path) noexcept {
  for (std::size_t index = 0; index < kNames.size(); ++index) {
    if (kNames[index] != name) continue;
    path = static_cast<Path>(index);
    return true;
  }
  return false;
}

std::vector<std::string> requestable_paths() {
  std::vector<std::string> names;
  for (const std::string_view name : kNames) {
    if (name != path_name(Path::kernel)) names.emplace_back(name);
  }
  return names;
}

std::string requestable_path_list() {
  const std::vector<std::string> names = requestable_paths();
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

}  // namespace brant
