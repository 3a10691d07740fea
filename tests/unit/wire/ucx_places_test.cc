// Where UCX is looked for, and what keeps a file that lies there from being loaded.
#include "port/wire/ucx/ucx_places.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace brant::port::ucx::test {
namespace {

namespace fs = std::filesystem;

/// A virtual environment with a wheel of UCX whose library is no library: nothing here is loaded.
class UcxPlaces : public testing::Test {
 protected:
  void SetUp() override {
    const char* before = std::getenv("VIRTUAL_ENV");
    if (before != nullptr) before_ = before;
    std::string pattern = (fs::temp_directory_path() / "brant_places_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = fs::canonical(pattern);
    library_ = site() / "libucx" / "lib" / "libucp.so.0";
    fs::create_directories(library_.parent_path());
    std::ofstream(library_) << "no library";
    for (fs::path part = library_; part != root_; part = part.parent_path()) {
      ASSERT_EQ(::chmod(part.c_str(), 0755), 0);
    }
    ::setenv("VIRTUAL_ENV", root_.c_str(), 1);
  }

  void TearDown() override {
    if (before_) {
      ::setenv("VIRTUAL_ENV", before_->c_str(), 1);
    } else {
      ::unsetenv("VIRTUAL_ENV");
    }
    fs::remove_all(root_);
  }

  fs::path site() const { return root_ / "lib" / "python3.99" / "site-packages"; }

  std::string why() const { return why_unsafe(library_, ::geteuid()); }

  /// What the search says of the wheel.
  std::optional<UcxPlace> wheel() const {
    for (const UcxPlace& place : ucx_places()) {
      if (place.path == library_.string()) return place;
    }
    return std::nullopt;
  }

  fs::path root_, library_;

 private:
  std::optional<std::string> before_;
};

TEST_F(UcxPlaces, the_wheel_of_the_active_python_is_taken) {
  ASSERT_TRUE(wheel());
  EXPECT_EQ(wheel()->refused, "");
}

TEST_F(UcxPlaces, a_wheel_that_is_too_old_is_passed_over_by_its_version) {
  fs::create_directory(site() / "libucx_cu12-1.15.0.dist-info");
  ASSERT_TRUE(wheel());
  EXPECT_EQ(wheel()->refused, "is UCX 1.15.0, brant needs 1.16 or newer");
}

TEST_F(UcxPlaces, a_folder_that_others_may_write_to_is_passed_over_by_name) {
  ASSERT_EQ(::chmod(site().c_str(), 0777), 0);
  ASSERT_TRUE(wheel());
  EXPECT_EQ(wheel()->refused, "others may write to " + site().string());
}

TEST_F(UcxPlaces, sticky_folders_will_do_further_up_but_not_around_the_file) {
  ASSERT_EQ(::chmod(site().c_str(), 01777), 0);
  EXPECT_EQ(why(), "");
  ASSERT_EQ(::chmod(library_.parent_path().c_str(), 01777), 0);
  EXPECT_EQ(why(), "others may write to " + library_.parent_path().string());
}

TEST_F(UcxPlaces, a_file_that_others_may_write_to_is_refused) {
  ASSERT_EQ(::chmod(library_.c_str(), 0666), 0);
  EXPECT_EQ(why(), "others may write to " + library_.string());
}

TEST_F(UcxPlaces, what_belongs_to_another_user_is_refused_unless_our_own_code_is_theirs) {
  constexpr unsigned kNobody = 65534;
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  ASSERT_EQ(::chown(library_.c_str(), kNobody, static_cast<gid_t>(-1)), 0);
  EXPECT_EQ(why(), library_.string() + " belongs to another user (65534)");
  EXPECT_EQ(why_unsafe(library_, kNobody), "");
}

TEST_F(UcxPlaces, a_link_is_judged_by_what_it_points_to) {
  const fs::path link = root_ / "libucp.so.0";
  fs::create_symlink(library_, link);
  EXPECT_EQ(why_unsafe(link, ::geteuid()), "");
  ASSERT_EQ(::chmod(library_.c_str(), 0666), 0);
  EXPECT_EQ(why_unsafe(link, ::geteuid()), "others may write to " + library_.string());
}

}  // namespace
}  // namespace brant::port::ucx::test
