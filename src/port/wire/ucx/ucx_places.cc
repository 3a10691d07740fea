#include "port/wire/ucx/ucx_places.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/env.h"
#include "port/wire/ucx/ucx_library.h"

namespace brant::port::ucx {
namespace {

namespace fs = std::filesystem;

/// The file that contains this code: libbrant, or the program it is linked into.
fs::path own_object() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&ucx_places), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  // A program's own name is what it was started as, which may be no path: the kernel knows better.
  const fs::path named = fs::canonical(info.dli_fname, error);
  if (!error && std::string_view(info.dli_fname).find('/') != std::string_view::npos) return named;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : program;
}

unsigned owner_of(const fs::path& file) {
  struct stat found{};
  return !file.empty() && ::stat(file.c_str(), &found) == 0 ? found.st_uid : ::geteuid();
}

bool others_may_write(const struct stat& entry, bool sticky_will_do) {
  if (sticky_will_do && S_ISDIR(entry.st_mode) && (entry.st_mode & S_ISVTX) != 0) return false;
  if ((entry.st_mode & S_IWOTH) != 0) return true;
  const bool own_group = entry.st_gid == 0 || (entry.st_gid == ::getegid() && ::getegid() == ::geteuid());
  return (entry.st_mode & S_IWGRP) != 0 && !own_group;
}

/// Pip writes the version beside the package: libucx_cu13-1.22.0.dist-info. Loading a library only to ask it is no way:
/// UCX cannot be unloaded, and two sets in one process crash.
std::string wheel_version(const fs::path& site) {
  std::error_code error;
  for (fs::directory_iterator entry(site, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::size_t dash = name.find('-');
    const std::size_t suffix = name.rfind(".dist-info");
    if (!name.starts_with("libucx") || dash == std::string::npos || suffix == std::string::npos || suffix < dash)
      continue;
    return name.substr(dash + 1, suffix - dash - 1);
  }
  return {};
}

bool too_old(std::string_view version) {
  unsigned major = 0, minor = 0;
  const char* end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return false;  // unknown: loading will tell
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return false;
  return major < kOldestMajor || (major == kOldestMajor && minor < kOldestMinor);
}

/// The folder of packages that SITE/libucx/lib/libucp.so.0 really lies in: brant's own trees link to the wheel.
fs::path site_of(const fs::path& file) {
  std::error_code error;
  const fs::path whole = fs::canonical(file, error);
  return error ? fs::path() : whole.parent_path().parent_path().parent_path();
}

UcxPlace judged(const fs::path& file, unsigned owner) {
  UcxPlace place{file.string(), {}};
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    place.refused = "no such file";
  } else if (const std::string version = wheel_version(site_of(file)); too_old(version)) {
    place.refused = fmt::format("is UCX {}, brant needs {}.{} or newer", version, kOldestMajor, kOldestMinor);
  } else {
    place.refused = why_unsafe(file, owner);
  }
  return place;
}

/// The folder above bin/ of the Python that the user would start. Not resolved: a virtual environment's is a link.
fs::path python_prefix() {
  if (const std::string_view active = env("VIRTUAL_ENV"); active.starts_with('/')) return active;
  std::string_view path = env("PATH");
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    const fs::path folder(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
    if (!folder.is_absolute()) continue;
    for (const char* name : {"python3", "python"}) {
      if (::access((folder / name).c_str(), X_OK) == 0) return folder.parent_path();
    }
  }
  return {};
}

std::vector<fs::path> python_sites() {
  std::vector<fs::path> sites;
  const fs::path prefix = python_prefix();
  if (prefix.empty()) return sites;
  std::error_code error;
  for (fs::directory_iterator entry(prefix / "lib", error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) sites.push_back(entry->path() / packages);
  }
  std::ranges::sort(sites);
  return sites;
}

}  // namespace

std::string why_unsafe(const fs::path& file, unsigned owner) {
  std::error_code error;
  const fs::path whole = fs::canonical(file, error);
  if (error) return error.message();
  const fs::path folder = whole.parent_path();
  fs::path part;
  for (const fs::path& name : whole) {
    part /= name;
    struct stat entry{};
    if (::lstat(part.c_str(), &entry) != 0) return fmt::format("{} cannot be examined", part.string());
    if (entry.st_uid != 0 && entry.st_uid != ::geteuid() && entry.st_uid != owner)
      return fmt::format("{} belongs to another user ({})", part.string(), entry.st_uid);
    if (others_may_write(entry, part != folder)) return fmt::format("others may write to {}", part.string());
  }
  return {};
}

std::vector<UcxPlace> ucx_places() {
  const fs::path object = own_object();
  const unsigned owner = owner_of(object);
  std::vector<UcxPlace> places;
  if (!object.empty()) {
    for (const char* site : {"../lib", "../.."}) {
      const fs::path beside = (object.parent_path() / site).lexically_normal();
      places.push_back(judged(beside / "libucx" / "lib" / kSoname, owner));
    }
  }
  for (const fs::path& site : python_sites()) {
    const fs::path file = site / "libucx" / "lib" / kSoname;
    std::error_code error;
    if (fs::exists(file, error)) places.push_back(judged(file, owner));
  }
  return places;
}

}  // namespace brant::port::ucx
