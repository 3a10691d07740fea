#include "bench/nccl/nccl_library.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/dynamic_library.h"
#include "base/env.h"
#include "brant/base/status.h"

namespace brant::bench::nccl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNvls = "NCCL_NVLS_ENABLE";
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

/// The first candidate that the loader takes. Throws not_found.
DynamicLibrary open_first() {
  std::string tried;
  for (const std::string& candidate : candidates(Surroundings::from_environment())) {
    DynamicLibrary nccl(candidate);
    if (nccl) return nccl;
    tried += fmt::format("\n  {} ({})", candidate, nccl.why_not());
  }
  throw Error(Status::not_found, fmt::format("no NCCL was found. Tried:{}\n{}", tried, kCure));
}

Library load() {
  const DynamicLibrary nccl = open_first();
  FunctionFinder functions(nccl);
  Library lib;
  functions.need(lib.get_version, "ncclGetVersion");
  functions.need(lib.get_unique_id, "ncclGetUniqueId");
  functions.need(lib.comm_init_rank, "ncclCommInitRank");
  functions.need(lib.comm_destroy, "ncclCommDestroy");
  functions.need(lib.comm_abort, "ncclCommAbort");
  functions.need(lib.send, "ncclSend");
  functions.need(lib.recv, "ncclRecv");
  functions.need(lib.all_reduce, "ncclAllReduce");
  functions.need(lib.broadcast, "ncclBroadcast");
  functions.need(lib.all_gather, "ncclAllGather");
  functions.need(lib.reduce_scatter, "ncclReduceScatter");
  functions.need(lib.group_start, "ncclGroupStart");
  functions.need(lib.group_end, "ncclGroupEnd");
  functions.need(lib.get_error_string, "ncclGetErrorString");
  lib.path = DynamicLibrary::file_of(reinterpret_cast<const void*>(lib.get_version));
  if (functions.missing() != nullptr) {
    throw Error(Status::version_mismatch,
                fmt::format("{} has no function {}: brant needs NCCL 2.7 or newer. {}",
                            lib.path.empty() ? std::string(env("BRANT_NCCL")) : lib.path, functions.missing(), kCure));
  }
  nccl.find(lib.get_last_error, "ncclGetLastError");
  nccl.find(lib.all_to_all, "ncclAlltoAll");
  int (*stand_in)() = nullptr;
  nccl.find(stand_in, "brantNcclStandIn");
  lib.stands_in = stand_in != nullptr;
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

void leave_nvls_out() { static_cast<void>(::setenv(kNvls, "0", 0)); }

std::string nvls_setting() { return fmt::format("{}={}", kNvls, env(kNvls)); }

const Library& library() {
  static const LoadedOnce<Library> loaded(load);
  return loaded.get();
}

}  // namespace brant::bench::nccl
