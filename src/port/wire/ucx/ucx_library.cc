#include "port/wire/ucx/ucx_library.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/dynamic_library.h"
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

constexpr std::string_view kCureOfForeign =
    "Cure: start brant, or load its UCX (in Python libucx.load_library()), before the library that brings the other "
    "one, "
    "which is often MPI.";

/// The library that is taken; none if nothing could be opened.
struct Loaded {
  std::optional<DynamicLibrary> library;
  bool was_mapped = false;
  bool is_foreign = false;  ///< Mapped by others, and none that would have been chosen.
};

std::optional<DynamicLibrary> try_open(const std::string& name, std::vector<std::string>& tried) {
  DynamicLibrary library(name);
  if (library) return library;
  tried.push_back(fmt::format("{} ({})", name, library.why_not()));
  return std::nullopt;
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
std::optional<DynamicLibrary> open_first(const std::vector<std::string>& candidates, std::vector<std::string>& tried) {
  for (const std::string& candidate : candidates) {
    if (!is_file(candidate)) {
      tried.push_back(candidate + " (no such file)");
      continue;
    }
    if (auto library = try_open(candidate, tried)) return library;
  }
  return std::nullopt;
}

std::string file_of(const DynamicLibrary& ucp) {
  decltype(&ucp_get_version_string) function = nullptr;
  return ucp.find(function, "ucp_get_version_string") ? DynamicLibrary::file_of(reinterpret_cast<const void*>(function))
                                                      : std::string();
}

/// BRANT_UCX names a place. A different UCX that is mapped already cannot be replaced: two sets in one process crash.
Loaded open_wanted(std::string_view wanted, const DynamicLibrary& mapped, std::vector<std::string>& tried) {
  if (wanted == "system") {
    if (mapped) return {mapped, true};
    return {try_open(kSoname, tried), false};
  }
  const std::vector<std::string> candidates = candidates_of(wanted);
  if (mapped) {
    const std::string have = file_of(mapped);
    for (const std::string& candidate : candidates) {
      std::error_code error;
      if (is_file(candidate) && fs::equivalent(candidate, have, error)) return {mapped, true};
    }
    throw Error(Status::version_mismatch,
                fmt::format("wire ucx: BRANT_UCX={} was asked for, but this process has mapped {} already, and two UCX "
                            "sets in one process crash. {} Or unset BRANT_UCX.",
                            wanted, have, kCureOfForeign));
  }
  return {open_first(candidates, tried), false};
}

Loaded open_default(const DynamicLibrary& mapped, std::vector<std::string>& tried) {
  const std::vector<UcxPlace> places = ucx_places();
  if (mapped) {
    const std::string have = file_of(mapped);
    bool ours = false;
    for (const UcxPlace& place : places) {
      // The wheel has the library under several names, as files of their own.
      std::error_code error;
      const fs::path folder = fs::path(place.path).parent_path();
      ours = ours || (is_file(place.path) && fs::equivalent(folder, fs::path(have).parent_path(), error));
    }
    return {mapped, true, !ours};
  }
  for (const UcxPlace& place : places) {
    if (!place.refused.empty()) {
      tried.push_back(fmt::format("{} ({})", place.path, place.refused));
      if (is_file(place.path)) log::warn("wire ucx: passing over {}: {}", place.path, place.refused);
    } else if (auto library = try_open(place.path, tried)) {
      return {std::move(library), false};
    }
  }
  return {try_open(kSoname, tried), false};
}

/// Throws version_mismatch if a function was missing.
void check_all_found(const FunctionFinder& functions, const UcxLibrary& lib) {
  if (functions.missing() == nullptr) return;
  throw Error(Status::version_mismatch,
              fmt::format("wire ucx: {} has no function {}. {}", lib.path, functions.missing(), kCure));
}

void bind_all(const DynamicLibrary& ucp, UcxLibrary& lib) {
  FunctionFinder functions(ucp);
  functions.need(lib.config_read, "ucp_config_read");
  functions.need(lib.config_modify, "ucp_config_modify");
  functions.need(lib.config_release, "ucp_config_release");
  functions.need(lib.init_version, "ucp_init_version");
  functions.need(lib.cleanup, "ucp_cleanup");
  functions.need(lib.context_query, "ucp_context_query");
  functions.need(lib.worker_create, "ucp_worker_create");
  functions.need(lib.worker_destroy, "ucp_worker_destroy");
  functions.need(lib.worker_query, "ucp_worker_query");
  functions.need(lib.worker_get_address, "ucp_worker_get_address");
  functions.need(lib.worker_release_address, "ucp_worker_release_address");
  functions.need(lib.worker_progress, "ucp_worker_progress");
  functions.need(lib.worker_get_efd, "ucp_worker_get_efd");
  functions.need(lib.worker_arm, "ucp_worker_arm");
  functions.need(lib.worker_set_am_recv_handler, "ucp_worker_set_am_recv_handler");
  functions.need(lib.ep_create, "ucp_ep_create");
  functions.need(lib.ep_query, "ucp_ep_query");
  functions.need(lib.ep_close_nbx, "ucp_ep_close_nbx");
  functions.need(lib.ep_flush_nbx, "ucp_ep_flush_nbx");
  functions.need(lib.am_send_nbx, "ucp_am_send_nbx");
  functions.need(lib.tag_send_nbx, "ucp_tag_send_nbx");
  functions.need(lib.tag_recv_nbx, "ucp_tag_recv_nbx");
  functions.need(lib.tag_probe_nb, "ucp_tag_probe_nb");
  functions.need(lib.request_cancel, "ucp_request_cancel");
  functions.need(lib.request_check_status, "ucp_request_check_status");
  functions.need(lib.request_free, "ucp_request_free");
  functions.need(lib.am_recv_data_nbx, "ucp_am_recv_data_nbx");
  functions.need(lib.am_data_release, "ucp_am_data_release");
  functions.need(lib.mem_map, "ucp_mem_map");
  functions.need(lib.mem_unmap, "ucp_mem_unmap");
  functions.need(lib.mem_query, "ucp_mem_query");
  functions.need(lib.rkey_pack, "ucp_rkey_pack");
  functions.need(lib.rkey_buffer_release, "ucp_rkey_buffer_release");
  functions.need(lib.ep_rkey_unpack, "ucp_ep_rkey_unpack");
  functions.need(lib.rkey_destroy, "ucp_rkey_destroy");
  functions.need(lib.rkey_ptr, "ucp_rkey_ptr");
  functions.need(lib.put_nbx, "ucp_put_nbx");
  functions.need(lib.get_nbx, "ucp_get_nbx");
  functions.need(lib.atomic_op_nbx, "ucp_atomic_op_nbx");
  functions.need(lib.status_string, "ucs_status_string");
  check_all_found(functions, lib);
}

/// libucp of one build with libucs of another crashes in the configuration parser: refuse it by name.
void check_one_set(const UcxLibrary& lib) {
  const fs::path other = DynamicLibrary::file_of(reinterpret_cast<const void*>(lib.status_string));
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
  const DynamicLibrary mapped(kSoname, DynamicLibrary::Open::if_mapped);
  const Loaded loaded = wanted.empty() ? open_default(mapped, tried) : open_wanted(wanted, mapped, tried);
  if (!loaded.library) {
    throw Error(Status::not_found, fmt::format("wire ucx: no UCX library found. Tried:{}\n{}", listed(tried), kCure));
  }
  UcxLibrary lib;
  lib.path = file_of(*loaded.library);
  FunctionFinder functions(*loaded.library);
  functions.need(lib.get_version, "ucp_get_version");
  functions.need(lib.get_version_string, "ucp_get_version_string");
  check_all_found(functions, lib);
  unsigned major = 0, minor = 0, release = 0;
  lib.get_version(&major, &minor, &release);
  lib.version = fmt::format("{}.{}.{}", major, minor, release);
  lib.version_code = major << 16 | minor << 8 | release;
  if (major < kOldestMajor || (major == kOldestMajor && minor < kOldestMinor)) {
    throw Error(
        Status::version_mismatch,
        fmt::format("wire ucx: {} is UCX {}, brant needs {}.{} or newer{}.{}\n{}", lib.path, lib.version, kOldestMajor,
                    kOldestMinor, loaded.was_mapped ? " (another library of this process loaded it first)" : "",
                    tried.empty() ? "" : " Passed over:" + listed(tried), loaded.is_foreign ? kCureOfForeign : kCure));
  }
  bind_all(*loaded.library, lib);
  check_one_set(lib);
  if (loaded.is_foreign) {
    lib.remark = fmt::format(
        "brant uses UCX {} of {}, which another library of this process loaded first: it may lack support for GPUs, "
        "and "
        "all processes of a job need the same. {}",
        lib.version, lib.path, kCureOfForeign);
    log::warn("wire ucx: {}", lib.remark);
  }
  return lib;
}

}  // namespace

const UcxLibrary& ucx_library() {
  static const LoadedOnce<UcxLibrary> loaded(load);
  return loaded.get();
}

}  // namespace brant::port::ucx
