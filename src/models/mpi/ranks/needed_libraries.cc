#include "models/mpi/ranks/needed_libraries.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::mpi {
namespace {

constexpr std::array kSystemFolders = {"/lib/",         "/lib32/",           "/lib64/",
                                       "/usr/lib/",     "/usr/lib64/",       "/usr/local/lib/",
                                       "/usr/libexec/", "/usr/local/lib64/", "/usr/local/cuda"};
// Whose state is the process's own, wherever they were installed: MPI, UCX, CUDA and what compilers bring along.
constexpr std::array kSharedLibraries = {"libmpi_abi.so", "libmpi.so.12", "libbrant.so", "libuc",     "libcu",
                                         "libnv",         "libnccl",      "libstdc++.",  "libgcc_s.", "libgfortran.",
                                         "libquadmath.",  "libgomp.",     "libomp.",     "libiomp5."};
// brant's own, which this executable finds beside itself before those that the program was linked with. They export the
// same names for different ABIs: only the one that is needed may be there.
constexpr std::array kOwnLibraries = {"libmpi_abi.so.1", "libmpi.so.12"};

std::string real_path(const std::string& path) {
  std::array<char, PATH_MAX> real = {};
  return ::realpath(path.c_str(), real.data()) == nullptr ? path : real.data();
}

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

/// Where the program has the library looked for first. The dynamic linker cannot tell: an image lies in no folder.
std::string found_by_program(const ExecutableFile& file, const std::string& library) {
  const std::string program = real_path(file.path);
  const std::string folder = program.substr(0, program.rfind('/'));
  for (const std::string& run_path : file.run_paths) {
    std::string path = replaced(replaced(run_path, "${ORIGIN}", folder), "$ORIGIN", folder) + '/' + library;
    if (::access(path.c_str(), R_OK) == 0) return path;
  }
  return library;
}

std::set<const link_map*> loaded_libraries() {
  std::set<const link_map*> libraries;
  void* self = ::dlopen(nullptr, RTLD_NOW);
  link_map* first = nullptr;
  ::dlinfo(self, RTLD_DI_LINKMAP, static_cast<void*>(&first));
  for (const link_map* map = first; map != nullptr; map = map->l_next) libraries.insert(map);
  ::dlclose(self);
  return libraries;
}

bool is_private(const link_map& map) {
  const std::string path = real_path(map.l_name);
  const std::string_view name = std::string_view(map.l_name).substr(std::string_view(map.l_name).rfind('/') + 1);
  return std::none_of(kSystemFolders.begin(), kSystemFolders.end(),
                      [&path](const char* folder) { return path.starts_with(folder); }) &&
         std::none_of(kSharedLibraries.begin(), kSharedLibraries.end(),
                      [name](const char* library) { return name.starts_with(library); });
}

void refuse_private_libraries(const ExecutableFile& file, const std::set<const link_map*>& before) {
  for (const link_map* map : loaded_libraries()) {
    if (before.count(map) != 0 || !is_private(*map)) continue;
    throw Error(Status::not_supported,
                fmt::format("'{}' cannot run with several ranks in a process: it needs the library {}, whose global "
                            "variables its ranks would share. Link that library statically (.a), set "
                            "BRANT_MPI_SHARE_LIBRARIES=1 if its variables may be shared, or run it with one rank a "
                            "process.",
                            file.path, map->l_name));
  }
}

}  // namespace

void load_needed_libraries(const ExecutableFile& file, bool share) {
  const std::set<const link_map*> before = loaded_libraries();
  for (const std::string& library : file.needed) {
    // One that is loaded already has its name, and is taken before a file of the same name.
    if (::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) != nullptr) continue;
    if (std::ranges::find(kOwnLibraries, library) != kOwnLibraries.end() &&
        ::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) {
      continue;
    }
    if (::dlopen(found_by_program(file, library).c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      throw Error(Status::not_found,
                  fmt::format("'{}' needs a library that cannot be loaded: {}. Add its folder to LD_LIBRARY_PATH.",
                              file.path, ::dlerror()));
    }
  }
  if (!share) refuse_private_libraries(file, before);
}

}  // namespace brant::mpi
