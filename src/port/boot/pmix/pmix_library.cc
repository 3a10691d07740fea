#include "port/boot/pmix/pmix_library.h"

#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/dynamic_library.h"
#include "base/env.h"
#include "brant/base/status.h"

namespace brant::port::pmix {
namespace {

std::vector<std::string> candidates() {
  if (const std::string_view file = env("BRANT_PMIX_LIBRARY"); !file.empty()) return {std::string(file)};
  std::vector<std::string> files;
  if (const std::string_view prefix = env("PMIX_PREFIX"); !prefix.empty()) {
    files.push_back(fmt::format("{}/lib/libpmix.so.2", prefix));
    files.push_back(fmt::format("{}/lib/openmpi/libpmix.so.2", prefix));
  }
  files.emplace_back("libpmix.so.2");
#if defined(__x86_64__)
  files.emplace_back("/usr/lib/x86_64-linux-gnu/pmix2/lib/libpmix.so.2");
#elif defined(__aarch64__)
  files.emplace_back("/usr/lib/aarch64-linux-gnu/pmix2/lib/libpmix.so.2");
#endif
  return files;
}

Library functions_of(const DynamicLibrary& pmix, const std::string& file) {
  Library library{};
  library.file = file;
  FunctionFinder functions(pmix);
  functions.need(library.error_string, "PMIx_Error_string");
  functions.need(library.init, "PMIx_Init");
  functions.need(library.finalize, "PMIx_Finalize");
  functions.need(library.abort, "PMIx_Abort");
  functions.need(library.put, "PMIx_Put");
  functions.need(library.commit, "PMIx_Commit");
  functions.need(library.fence_nb, "PMIx_Fence_nb");
  functions.need(library.get, "PMIx_Get");
  functions.need(library.get_nb, "PMIx_Get_nb");
  if (functions.missing() != nullptr) {
    throw Error(Status::version_mismatch,
                fmt::format("{} has no function {}: it is not a PMIx client library of version 3.2 or later", file,
                            functions.missing()));
  }
  return library;
}

Library load() {
  std::string faults;
  for (const std::string& file : candidates()) {
    const DynamicLibrary pmix(file);
    if (pmix) return functions_of(pmix, file);
    faults += "\n  " + pmix.why_not();
  }
  throw Error(Status::not_found, fmt::format("this process was started under a PMIx server, but the PMIx client "
                                             "library was not found:{}\nInstall it (Debian and "
                                             "Ubuntu: libpmix2; other systems: openpmix or pmix), or name the "
                                             "launcher's own libpmix.so.2 in BRANT_PMIX_LIBRARY",
                                             faults));
}

}  // namespace

const Library& library() {
  static const LoadedOnce<Library> loaded(load);
  return loaded.get();
}

Info directive(const char* key) noexcept {
  Info info{};
  std::strncpy(info.key, key, sizeof info.key - 1);
  info.value.type = kTypeBool;
  info.value.data.flag = true;
  return info;
}

}  // namespace brant::port::pmix
