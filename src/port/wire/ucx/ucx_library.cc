#include "port/wire/ucx/ucx_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/env.h"
#include "base/log.h"
#include "brant/base/status.h"
#include "port/wire/ucx/ucx_places.h"

namespace brant::port::ucx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCure =
    "Cure: pip install libucx-cu13 into the active Python environment, install a system UCX 1.16 or newer, or name one "
    "with BRANT_UCX=PATH.";

struct Loaded {
  void* handle = nullptr;
  bool was_mapped = false;
};

std::string file_of(const void* symbol) {
  Dl_info info{};
  if (symbol == nullptr || dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const fs::path whole = fs::canonical(info.dli_fname, error);
  return error ? std::string(info.dli_fname) : whole.string();
}

/// RTLD_NODELETE: UCX has an asynchronous thread and memory hooks; unmapping it would pull the code from under them.
void* try_open(const std::string& name, int extra_flags, std::vector<std::string>& tried) {
  dlerror();
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | extra_flags);
  if (handle == nullptr) {
    const char* why = dlerror();
    tried.push_back(fmt::format("{} ({})", name, why != nullptr ? why : "not loaded"));
  }
  return handle;
}

std::vector<std::string> candidates_of(std::string_view wanted) {
  const fs::path base{wanted};
  return {base.string(), (base / kSoname).string(), (base / "lib" / kSoname).string(),
          (base / "libucx" / "lib" / kSoname).string()};
}

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// Opens the first candidate that is a file and loads.
void* open_first(const std::vector<std::string>& candidates, std::vector<std::string>& tried) {
  for (const std::string& candidate : candidates) {
    if (!is_file(candidate)) {
      tried.push_back(candidate + " (no such file)");
      continue;
    }
    if (void* handle = try_open(candidate, 0, tried)) return handle;
  }
  return nullptr;
}

std::string mapped_file(void* handle) { return file_of(dlsym(handle, "ucp_get_version_string")); }

/// BRANT_UCX names a place. A different UCX that is mapped already cannot be replaced: two sets in one process crash.
Loaded open_wanted(std::string_view wanted, void* mapped, std::vector<std::string>& tried) {
  if (wanted == "system") {
    if (mapped != nullptr) return {mapped, true};
    return {try_open(kSoname, 0, tried), false};
  }
  const std::vector<std::string> candidates = candidates_of(wanted);
  if (mapped != nullptr) {
    const std::string have = mapped_file(mapped);
    for (const std::string& candidate : candidates) {
      std::error_code error;
      if (is_file(candidate) && fs::equivalent(candidate, have, error)) return {mapped, true};
    }
    throw Error(Status::version_mismatch,
                fmt::format("wire ucx: BRANT_UCX={} was asked for, but this process has mapped {} already, and two UCX "
                            "sets in one process crash. "
                            "Cure: load brant before the other library (often MPI), or unset BRANT_UCX.",
                            wanted, have));
  }
  return {open_first(candidates, tried), false};
}

Loaded open_default(void* mapped, std::vector<std::string>& tried) {
  const std::vector<UcxPlace> places = ucx_places();
  if (mapped != nullptr) {
    const std::string have = mapped_file(mapped);
    bool ours = false;
    for (const UcxPlace& place : places) {
      std::error_code error;
      ours = ours || (is_file(place.path) && fs::equivalent(place.path, have, error));
    }
    if (!ours) {
      log::warn(
          "wire ucx: using {}, which another library of this process loaded first; it may lack GPU support. "
          "Load brant before it to get brant's own UCX.",
          have);
    }
    return {mapped, true};
  }
  for (const UcxPlace& place : places) {
    if (!place.refused.empty()) {
      tried.push_back(fmt::format("{} ({})", place.path, place.refused));
      if (is_file(place.path)) log::warn("wire ucx: passing over {}: {}", place.path, place.refused);
    } else if (void* handle = try_open(place.path, 0, tried)) {
      return {handle, false};
    }
  }
  return {try_open(kSoname, 0, tried), false};
}

template <typename Function>
void find_function(void* handle, const std::string& path, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (function == nullptr) {
    throw Error(Status::version_mismatch, fmt::format("wire ucx: {} has no function {}. {}", path, name, kCure));
  }
}

void bind_all(void* handle, UcxLibrary& lib) {
  const auto get = [&](auto& function, const char* name) { find_function(handle, lib.path, function, name); };
  get(lib.config_read, "ucp_config_read");
  get(lib.config_modify, "ucp_config_modify");
  get(lib.config_release, "ucp_config_release");
  get(lib.init_version, "ucp_init_version");
  get(lib.cleanup, "ucp_cleanup");
  get(lib.context_query, "ucp_context_query");
  get(lib.worker_create, "ucp_worker_create");
  get(lib.worker_destroy, "ucp_worker_destroy");
  get(lib.worker_query, "ucp_worker_query");
  get(lib.worker_get_address, "ucp_worker_get_address");
  get(lib.worker_release_address, "ucp_worker_release_address");
  get(lib.worker_progress, "ucp_worker_progress");
  get(lib.worker_get_efd, "ucp_worker_get_efd");
  get(lib.worker_arm, "ucp_worker_arm");
  get(lib.worker_set_am_recv_handler, "ucp_worker_set_am_recv_handler");
  get(lib.ep_create, "ucp_ep_create");
  get(lib.ep_close_nbx, "ucp_ep_close_nbx");
  get(lib.ep_flush_nbx, "ucp_ep_flush_nbx");
  get(lib.am_send_nbx, "ucp_am_send_nbx");
  get(lib.tag_send_nbx, "ucp_tag_send_nbx");
  get(lib.tag_recv_nbx, "ucp_tag_recv_nbx");
  get(lib.request_cancel, "ucp_request_cancel");
  get(lib.request_check_status, "ucp_request_check_status");
  get(lib.request_free, "ucp_request_free");
  get(lib.am_recv_data_nbx, "ucp_am_recv_data_nbx");
  get(lib.am_data_release, "ucp_am_data_release");
  get(lib.mem_map, "ucp_mem_map");
  get(lib.mem_unmap, "ucp_mem_unmap");
  get(lib.mem_query, "ucp_mem_query");
  get(lib.rkey_pack, "ucp_rkey_pack");
  get(lib.rkey_buffer_release, "ucp_rkey_buffer_release");
  get(lib.ep_rkey_unpack, "ucp_ep_rkey_unpack");
  get(lib.rkey_destroy, "ucp_rkey_destroy");
  get(lib.rkey_ptr, "ucp_rkey_ptr");
  get(lib.put_nbx, "ucp_put_nbx");
  get(lib.get_nbx, "ucp_get_nbx");
  get(lib.status_string, "ucs_status_string");
}

/// libucp of one build with libucs of another crashes in the configuration parser: refuse it by name.
void check_one_set(const UcxLibrary& lib) {
  const fs::path other = file_of(reinterpret_cast<const void*>(lib.status_string));
  if (other.empty() || other.parent_path() == fs::path(lib.path).parent_path()) return;
  throw Error(Status::version_mismatch,
              fmt::format("wire ucx: a mixed UCX set: {} with {}. Cure: fix LD_LIBRARY_PATH, or load brant before the "
                          "library that brought the second one.",
                          lib.path, other.string()));
}

std::string listed(const std::vector<std::string>& tried) {
  std::string list;
  for (const std::string& line : tried) list += "\n  " + line;
  return list;
}

UcxLibrary load() {
  std::vector<std::string> tried;
  const std::string_view wanted = env("BRANT_UCX");
  void* mapped = dlopen(kSoname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  const Loaded loaded = wanted.empty() ? open_default(mapped, tried) : open_wanted(wanted, mapped, tried);
  if (loaded.handle == nullptr) {
    throw Error(Status::not_found, fmt::format("wire ucx: no UCX library found. Tried:{}\n{}", listed(tried), kCure));
  }
  UcxLibrary lib;
  lib.path = mapped_file(loaded.handle);
  find_function(loaded.handle, lib.path, lib.get_version, "ucp_get_version");
  find_function(loaded.handle, lib.path, lib.get_version_string, "ucp_get_version_string");
  unsigned major = 0, minor = 0, release = 0;
  lib.get_version(&major, &minor, &release);
  lib.version = fmt::format("{}.{}.{}", major, minor, release);
  lib.version_code = major << 16 | minor << 8 | release;
  if (major < kOldestMajor || (major == kOldestMajor && minor < kOldestMinor)) {
    throw Error(
        Status::version_mismatch,
        fmt::format("wire ucx: {} is UCX {}, brant needs {}.{} or newer{}.{}\n{}", lib.path, lib.version, kOldestMajor,
                    kOldestMinor, loaded.was_mapped ? " (another library of this process loaded it first)" : "",
                    tried.empty() ? "" : " Passed over:" + listed(tried), kCure));
  }
  bind_all(loaded.handle, lib);
  check_one_set(lib);
  return lib;
}

}  // namespace

const UcxLibrary& ucx_library() {
  // A failure is remembered too: what a second attempt finds mapped is what the first one left behind, and its text
  // would mislead.
  struct Outcome {
    std::optional<UcxLibrary> library;
    std::optional<Error> error;
  };
  static const Outcome outcome = [] {
    try {
      return Outcome{load(), std::nullopt};
    } catch (const Error& error) {
      return Outcome{std::nullopt, error};
    }
  }();
  if (outcome.error) throw *outcome.error;
  return *outcome.library;
}

}  // namespace brant::port::ucx
