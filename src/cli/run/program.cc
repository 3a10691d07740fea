#include "cli/run/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

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

}  // namespace

std::string find_program(const std::string& name) {
  constexpr int kNotFound = 127;
  constexpr int kNotExecutable = 126;
  if (name.find('/') != std::string::npos) {
    const Kind kind = kind_of(name);
    if (kind == Kind::good) return name;
    if (kind == Kind::missing) throw StartError(kNotFound, fmt::format("program '{}' does not exist", name));
    throw StartError(kNotExecutable, fmt::format("'{}' is not an executable file", name));
  }
  std::string not_executable;
  std::string_view folders = env("PATH");
  while (!name.empty() && !folders.empty()) {
    const std::size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);
    folders = colon == std::string_view::npos ? std::string_view{} : folders.substr(colon + 1);
    const std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    const Kind kind = kind_of(file);
    if (kind == Kind::good) return file;
    if (kind == Kind::not_executable && not_executable.empty()) not_executable = file;
  }
  if (!not_executable.empty())
    throw StartError(kNotExecutable, fmt::format("'{}' is not an executable file", not_executable));
  const bool here = !name.empty() && kind_of("./" + name) == Kind::good;
  throw StartError(kNotFound, fmt::format("program '{}' was not found in PATH{}", name,
                                          here ? fmt::format("; did you mean ./{}?", name) : ""));
}

}  // namespace brant::run
