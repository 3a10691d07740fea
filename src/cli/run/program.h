#pragma once

#include <stdexcept>
#include <string>

namespace brant::run {

/// The job could not be started; nothing of it is left running. The exit code follows the shell: 127 not found, 126
/// found but not to be executed, 1 for anything else.
class StartError : public std::runtime_error {
 public:
  StartError(int exit_code, const std::string& what) : std::runtime_error(what), exit_code_(exit_code) {}
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

/// The file to execute for `name`: itself if it has a slash, otherwise the first in PATH, as in a shell, and then in
/// the folder of this program. `path`: folders to look into first. Throws StartError.
std::string find_program(const std::string& name, const std::string& path = {});

}  // namespace brant::run
