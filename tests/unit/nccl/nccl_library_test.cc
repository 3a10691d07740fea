#include "bench/nccl/nccl_library.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "support/environment.h"
#include "support/temporary_folder.h"

namespace brant::bench::nccl {
namespace {

namespace fs = std::filesystem;
using brant::test::ScopedVariable;
using brant::test::TemporaryFolder;

constexpr int kNotFound = static_cast<int>(Status::not_found);
constexpr int kMismatch = static_cast<int>(Status::version_mismatch);

/// A file where pip would put the library, under `tree`.
std::string make_package(const std::string& tree, const std::string& packages) {
  const fs::path folder = fs::path(tree) / packages / "nvidia" / "nccl" / "lib";
  fs::create_directories(folder);
  std::ofstream(folder / "libnccl.so.2").flush();
  return (folder / "libnccl.so.2").string();
}

TEST(NcclLibrary, the_loader_is_asked_first_and_then_the_packages_of_pythons) {
  const TemporaryFolder venv, user, system;
  const std::string in_venv = make_package(venv.path(), "lib/python3.12/site-packages");
  const std::string in_user = make_package(user.path(), "lib/python3.11/site-packages");
  const std::string in_system = make_package(system.path(), "lib/python3/dist-packages");
  fs::create_directories(fs::path(system.path()) / "bin");
  std::ofstream(fs::path(system.path()) / "bin" / "python3").flush();
  const Surroundings surroundings{
      .wanted = {}, .path = "relative:/nowhere::" + system.path() + "/bin", .trees = {venv.path(), user.path()}};
  EXPECT_EQ(candidates(surroundings), (std::vector<std::string>{"libnccl.so.2", in_venv, in_user, in_system}));
}

TEST(NcclLibrary, folders_without_python_or_without_the_package_name_nothing) {
  const TemporaryFolder tree;
  make_package(tree.path(), "lib/ruby/site-packages");
  fs::create_directories(fs::path(tree.path()) / "lib" / "python3.11" / "site-packages");
  EXPECT_EQ(candidates({.wanted = {}, .path = tree.path() + "/bin", .trees = {tree.path(), "/nowhere"}}),
            (std::vector<std::string>{"libnccl.so.2"}));
}

TEST(NcclLibrary, what_is_named_is_the_only_candidate) {
  const TemporaryFolder folder;
  EXPECT_EQ(candidates({.wanted = "/a/libnccl.so", .path = "/usr/bin", .trees = {}}),
            (std::vector<std::string>{"/a/libnccl.so"}));
  EXPECT_EQ(candidates({.wanted = folder.path(), .path = {}, .trees = {}}),
            (std::vector<std::string>{folder.path() + "/libnccl.so.2", folder.path() + "/lib/libnccl.so.2"}));
}

TEST(NcclLibrary, versions_are_read_as_nccl_counts_them) {
  EXPECT_EQ(version_text(22803), "2.28.3");
  EXPECT_EQ(version_text(20900), "2.9.0");
  EXPECT_EQ(version_text(2708), "2.7.8");
}

/// Loads with BRANT_NCCL set, in a process of its own; prints what came of it and ends with the status.
[[noreturn]] void load(const std::string& wanted) {
  ::setenv("BRANT_NCCL", wanted.c_str(), 1);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      const Library& lib = library();
      std::fprintf(stderr, "NCCL %s from %s\n", lib.version.c_str(), lib.path.c_str());
      std::_Exit(0);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      if (attempt == 1) std::_Exit(static_cast<int>(error.status()) % 256);
    }
  }
  std::_Exit(255);
}

class NcclLoading : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(NcclLoading, a_wrong_path_says_what_was_tried_and_the_cure) {
  EXPECT_EXIT(load("/nowhere/libnccl.so.2"), testing::ExitedWithCode(kNotFound),
              "no NCCL was found.*/nowhere/libnccl.so.2.*Cure:.*nvidia-nccl-cu13.*BRANT_NCCL");
}

TEST_F(NcclLoading, a_file_that_is_no_library_is_refused) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/libnccl.so.2";
  std::ofstream(file) << "not a library";
  EXPECT_EXIT(load(file), testing::ExitedWithCode(kNotFound), "libnccl.so.2 .*Cure:");
}

TEST_F(NcclLoading, another_library_is_refused_by_the_function_it_lacks) {
  EXPECT_EXIT(load("libm.so.6"), testing::ExitedWithCode(kMismatch), "libm.so.6 has no function ncclGetVersion.*Cure:");
}

TEST_F(NcclLoading, a_folder_may_be_named) {
  const char* fake = std::getenv("BRANT_NCCL");
  if (fake == nullptr) GTEST_SKIP() << "ctest names the stand-in for NCCL in BRANT_NCCL";
  EXPECT_EXIT(load(fake), testing::ExitedWithCode(0), "NCCL 2.28.3 from .*fake_nccl/libnccl.so.2");
}

}  // namespace
}  // namespace brant::bench::nccl
