#include "port/boot/pmix/pmix_library.h"

#include <dlfcn.h>

#include <cstring>
#include <vector>

#include <fmt/format.h>

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

template <typename Function>
void resolve(void* handle, const std::string& file, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  if (function == nullptr) {
    throw Error(
        Status::version_mismatch,
        fmt::format("{} has no function {}: it is not a PMIx client library of version 3.2 or later", file, name));
  }
}

Library load() {
  std::string faults;
  for (const std::string& file : candidates()) {
    void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* why = ::dlerror();
      faults += fmt::format("\n  {}", why != nullptr ? why : file.c_str());
      continue;
    }
    Library library{};
    library.file = file;
    resolve(handle, file, "PMIx_Error_string", library.error_string);
    resolve(handle, file, "PMIx_Init", library.init);
    resolve(handle, file, "PMIx_Finalize", library.finalize);
    resolve(handle, file, "PMIx_Abort", library.abort);
    resolve(handle, file, "PMIx_Put", library.put);
    resolve(handle, file, "PMIx_Commit", library.commit);
    resolve(handle, file, "PMIx_Fence_nb", library.fence_nb);
    resolve(handle, file, "PMIx_Get", library.get);
    resolve(handle, file, "PMIx_Get_nb", library.get_nb);
    return library;
  }
  throw Error(Status::not_found, fmt::format("this process was started under a PMIx server, but the PMIx client "
                                             "library was not found:{}\nInstall it (Debian and "
                                             "Ubuntu: libpmix2; other systems: openpmix or pmix), or name the "
                                             "launcher's own libpmix.so.2 in BRANT_PMIX_LIBRARY",
                                             faults));
}

}  // namespace

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

Info directive(const char* key) noexcept {
  Info info{};
  std::strncpy(info.key, key, sizeof info.key - 1);
  info.value.type = kTypeBool;
  info.value.data.flag = true;
  return info;
}

}  // namespace brant::port::pmix
