#include "port/nccl/nccl_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/env.h"
#include "brant/base/status.h"

namespace brant::port::nccl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSoname = "libnccl.so.2";
constexpr std::string_view kCure =
    "Cure: install the package nvidia-nccl-cu13 with pip, or a system libnccl2, or name one with "
    "BRANT_NCCL=/path/to/libnccl.so.2.";

void add(std::vector<std::string>& list, const std::string& entry) {
  if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(entry);
}

/// The packages of the pythons under `tree`: pip's wheel puts the library into nvidia/nccl/lib.
void add_packages(std::vector<std::string>& list, const fs::path& tree) {
  std::error_code error;
  for (const char* lib : {"lib", "lib64"}) {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(tree / lib, error)) {
      if (!entry.path().filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        const fs::path file = entry.path() / packages / "nvidia" / "nccl" / "lib" / kSoname;
        if (fs::exists(file, error)) found.push_back(file.string());
      }
    }
    std::sort(found.begin(), found.end());
    for (const std::string& file : found) add(list, file);
  }
}

/// The trees of the pythons on PATH: /opt/env for /opt/env/bin.
std::vector<fs::path> python_trees(std::string_view path) {
  std::vector<fs::path> trees;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const fs::path folder{path.substr(begin, end - begin)};
    begin = end + 1;
    std::error_code error;
    if (folder.is_absolute() && fs::exists(folder / "python3", error)) trees.push_back(folder.parent_path());
  }
  return trees;
}

std::string file_of(const void* symbol) {
  Dl_info info{};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return {};
  return info.dli_fname;
}

template <typename Function>
bool find_function(void* handle, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

/// RTLD_NODELETE: NCCL keeps threads of its own.
void* open_first(std::vector<std::string>& tried) {
  for (const std::string& candidate : candidates(Surroundings::from_environment())) {
    dlerror();
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return handle;
    const char* why = dlerror();
    tried.push_back(fmt::format("{} ({})", candidate, why != nullptr ? why : "not loaded"));
  }
  return nullptr;
}

Library load() {
  std::vector<std::string> tried;
  void* const handle = open_first(tried);
  if (handle == nullptr) {
    std::string list;
    for (const std::string& line : tried) list += "\n  " + line;
    throw Error(Status::not_found, fmt::format("no NCCL was found. Tried:{}\n{}", list, kCure));
  }
  Library lib;
  const auto get = [&](auto& function, const char* name) {
    if (find_function(handle, function, name)) return;
    const std::string file = file_of(reinterpret_cast<const void*>(lib.get_version));
    throw Error(Status::version_mismatch,
                fmt::format("{} has no function {}: brant needs NCCL 2.7 or newer. {}",
                            file.empty() ? std::string(env("BRANT_NCCL")) : file, name, kCure));
  };
  get(lib.get_version, "ncclGetVersion");
  get(lib.get_unique_id, "ncclGetUniqueId");
  get(lib.comm_init_rank, "ncclCommInitRank");
  get(lib.comm_destroy, "ncclCommDestroy");
  get(lib.comm_abort, "ncclCommAbort");
  get(lib.send, "ncclSend");
  get(lib.recv, "ncclRecv");
  get(lib.group_start, "ncclGroupStart");
  get(lib.group_end, "ncclGroupEnd");
  get(lib.get_error_string, "ncclGetErrorString");
  find_function(handle, lib.get_last_error, "ncclGetLastError");
  lib.path = file_of(reinterpret_cast<const void*>(lib.get_version));
  int code = 0;
  if (lib.get_version(&code) == Outcome::success) lib.version = version_text(code);
  return lib;
}

}  // namespace

Surroundings Surroundings::from_environment() {
  Surroundings surroundings;
  surroundings.wanted = env("BRANT_NCCL");
  surroundings.path = env("PATH");
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string_view tree = env(name); !tree.empty()) surroundings.trees.emplace_back(tree);
  }
  if (const std::string_view home = env("HOME"); !home.empty())
    surroundings.trees.push_back(std::string(home) + "/.local");
  return surroundings;
}

std::vector<std::string> candidates(const Surroundings& surroundings) {
  std::vector<std::string> list;
  if (!surroundings.wanted.empty()) {
    const fs::path wanted = surroundings.wanted;
    std::error_code error;
    if (!fs::is_directory(wanted, error)) return {wanted.string()};
    return {(wanted / kSoname).string(), (wanted / "lib" / kSoname).string()};
  }
  list.emplace_back(kSoname);
  for (const std::string& tree : surroundings.trees) add_packages(list, tree);
  for (const fs::path& tree : python_trees(surroundings.path)) add_packages(list, tree);
  return list;
}

std::string version_text(int code) {
  const int unit = code >= 10'000 ? 10'000 : 1'000;  // as of 2.9
  return fmt::format("{}.{}.{}", code / unit, code % unit / 100, code % 100);
}

const Library& library() {
  // A failure is remembered too: the second attempt would say the same.
  struct Outcomes {
    std::optional<Library> library;
    std::optional<Error> error;
  };
  static const Outcomes outcome = [] {
    try {
      return Outcomes{load(), std::nullopt};
    } catch (const Error& error) {
      return Outcomes{std::nullopt, error};
    }
  }();
  if (outcome.error) throw *outcome.error;
  return *outcome.library;
}

}  // namespace brant::port::nccl
