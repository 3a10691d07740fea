#include "cli/run/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/env.h"

namespace brant::run {
namespace {

enum class Kind { missing, not_executable, good };

Kind kind_of(const std::string& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return Kind::missing;
  return S_ISREG(info.st_mode) && ::access(file.c_str(), X_OK) == 0 ? Kind::good : Kind::not_executable;
}

/// Where the programs lie that were built with this one.
std::string own_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

/// PATH, then beside this program: examples and benchmarks lie there, and are called by their names in the texts.
std::vector<std::string> places(const std::string& path) {
  std::vector<std::string> folders;
  for (std::string_view rest : {std::string_view(path), env("PATH")}) {
    while (!rest.empty()) {
      const std::size_t colon = rest.find(':');
      const std::string_view folder = rest.substr(0, colon);
      rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
      folders.emplace_back(folder.empty() ? "." : folder);
    }
  }
  if (std::string own = own_folder(); !own.empty()) folders.push_back(std::move(own));
  return folders;
}

}  // namespace

std::string find_program(const std::string& name, const std::string& path) {
  constexpr int kNotFound = 127;
  constexpr int kNotExecutable = 126;
  if (name.find('/') != std::string::npos) {
    const Kind kind = kind_of(name);
    if (kind == Kind::good) return name;
    if (kind == Kind::missing) throw StartError(kNotFound, fmt::format("program '{}' does not exist", name));
    throw StartError(kNotExecutable, fmt::format("'{}' is not an executable file", name));
  }
  if (name.empty()) throw StartError(kNotFound, "the program's name is empty");
  std::string not_executable;
  for (const std::string& folder : places(path)) {
    const std::string file = fmt::format("{}/{}", folder, name);
    const Kind kind = kind_of(file);
    if (kind == Kind::good) return file;
    if (kind == Kind::not_executable && not_executable.empty()) not_executable = file;
  }
  if (!not_executable.empty())
    throw StartError(kNotExecutable, fmt::format("'{}' is not an executable file", not_executable));
  const bool here = kind_of("./" + name) == Kind::good;
  throw StartError(kNotFound, fmt::format("program '{}' was not found in PATH, nor beside brant in {}{}", name,
                                          own_folder(), here ? fmt::format("; did you mean ./{}?", name) : ""));
}

}  // namespace brant::run
