#pragma once

#include <filesystem>
#include <string>

namespace brant::test {

/// The program that runs.
inline std::filesystem::path this_test() { return std::filesystem::read_symlink("/proc/self/exe"); }

/// Another program of the build, or of the bundle: all are in one folder.
inline std::string beside_this_test(const std::string& name) { return this_test().replace_filename(name).string(); }

}  // namespace brant::test
