#include "core/observe/statistics_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/env.h"
#include "base/unique_fd.h"

namespace brant {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPages = ".pages";

/// Takes a number and, where one is to follow, the dash behind it.
template <typename Number>
bool take_number(std::string_view& text, Number& number, std::string_view behind) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.substr(0, behind.size()) != behind) return false;
  text.remove_prefix(behind.size());
  return true;
}

/// Nobody has the page mapped any more. Where that cannot be told: false.
bool let_go(const std::string& file) noexcept {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  return fd && ::flock(fd.get(), LOCK_SH | LOCK_NB) == 0;
}

bool is_leftover(const std::string& file, std::string_view name, const ProcessMark& self) {
  const std::optional<ProcessMark> owner = owner_of_statistics_file(name);
  if (!owner) return false;
  if (owner->pid_namespace == self.pid_namespace) return check_process(*owner) == Status::peer_lost;
  // Its pid says nothing here, but its lock does. A draft has none yet.
  return name.front() != '.' && let_go(file);
}

}  // namespace

std::vector<std::string> statistics_folders() {
  const unsigned user = ::geteuid();
  std::vector<std::string> folders;
  const auto add = [&](const fs::path& above, std::string_view name) {
    if (!above.is_absolute()) return;
    std::string folder = (above / name).lexically_normal();
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(std::move(folder));
  };
  const std::string shared = fmt::format("brant-{}", user);
  add(fs::path(env("XDG_RUNTIME_DIR")), "brant");
  add(fs::path("/run/user") / std::to_string(user), "brant");
  add("/dev/shm", shared);
  add(fs::path(env("TMPDIR")), shared);
  add("/tmp", shared);
  return folders;
}

std::string why_untrusted(const std::string& folder) {
  struct stat info = {};
  if (::lstat(folder.c_str(), &info) != 0) return fmt::format("{}: {}", folder, std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) return fmt::format("{} is no folder", folder);
  if (info.st_uid != ::geteuid()) return fmt::format("{} belongs to user {}", folder, info.st_uid);
  if ((info.st_mode & 077u) != 0)
    return fmt::format("{} is open to other users (mode {:o}; chmod 700 cures it)", folder, info.st_mode & 0777u);
  return {};
}

std::string make_statistics_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return fmt::format("{}: {}", folder, std::strerror(errno));
  return why_untrusted(folder);
}

std::string statistics_file_name(const ProcessMark& owner, unsigned number) {
  return fmt::format("{}-{}-{}-{}", owner.pid, owner.start_time, owner.pid_namespace, number);
}

std::string published_pages_name(const ProcessMark& owner, unsigned number) {
  return statistics_file_name(owner, number) + std::string(kPages);
}

bool is_published_pages(std::string_view name) noexcept {
  return name.size() > kPages.size() && name.substr(name.size() - kPages.size()) == kPages;
}

std::optional<ProcessMark> owner_of_statistics_file(std::string_view name) {
  if (!name.empty() && name.front() == '.') name.remove_prefix(1);
  if (is_published_pages(name)) name.remove_suffix(kPages.size());
  ProcessMark owner;
  unsigned number = 0;
  const bool complete = take_number(name, owner.pid, "-") && take_number(name, owner.start_time, "-") &&
                        take_number(name, owner.pid_namespace, "-") && take_number(name, number, "") && name.empty();
  return complete && owner.pid > 0 ? std::optional(owner) : std::nullopt;
}

std::size_t remove_leftovers(const std::string& folder) noexcept {
  std::size_t removed = 0, seen = 0;
  try {
    const Result<ProcessMark> self = own_process_mark();
    if (!self || !why_untrusted(folder).empty()) return 0;
    std::error_code fault;
    for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end; entry.increment(fault)) {
      if (++seen > kStatisticsFilesMax) break;
      const std::string& file = entry->path().native();
      if (is_leftover(file, entry->path().filename().native(), *self) && ::unlink(file.c_str()) == 0) ++removed;
    }
  } catch (...) {
    return removed;  // no memory for a path: the next one removes the rest
  }
  return removed;
}

}  // namespace brant
