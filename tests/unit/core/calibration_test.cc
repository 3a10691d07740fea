#include "core/paths/calibration.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "core/paths/calibration_store.h"
#include "core/paths/calibration_text.h"
#include "support/temporary_folder.h"

namespace brant {
namespace {

constexpr EndPair kHost{false, false};
constexpr EndPair kDevice{true, true};

/// A file of its own, gone with the object.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& text = {})
      : path_(std::filesystem::temp_directory_path() /
              ("brant-calibration-" + std::to_string(::getpid()) + "-" + std::to_string(made_++))) {
    if (!text.empty()) std::ofstream(path_) << text;
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  static inline int made_ = 0;
  std::filesystem::path path_;
};

TEST(CalibrationText, memory_that_the_receiver_maps_is_read_back) {
  Calibration measured;
  measured.add(Path::shm, kFromMapped, {8192, 0.5});
  const std::string text = calibration_text(measured);
  EXPECT_NE(text.find("point shm mapped host 8192 0.5\n"), std::string::npos) << text;
  const Calibration read = parse_calibration(text, "test");
  EXPECT_EQ(read.points(Path::shm, kFromMapped).size(), 1u);
  EXPECT_TRUE(read.points(Path::shm, EndPair{false, false}).empty());
  EXPECT_THROW(parse_calibration("brant-calibration 1\npoint shm mapped device 8 1\n", "test"), Error);
}

TEST(Calibration, predicts_along_straight_lines_on_logarithmic_scales) {
  Calibration calibration;
  EXPECT_FALSE(calibration.predict(Path::ucx, kHost, 8));
  EXPECT_FALSE(calibration.knows(kHost));
  calibration.add(Path::ucx, kHost, {10000, 100});
  calibration.add(Path::ucx, kHost, {100, 1});
  EXPECT_TRUE(calibration.knows(kHost));
  EXPECT_FALSE(calibration.knows(kDevice));
  EXPECT_FALSE(calibration.predict(Path::ucx, kDevice, 100));
  EXPECT_FALSE(calibration.predict(Path::shm, kHost, 100));
  EXPECT_DOUBLE_EQ(*calibration.predict(Path::ucx, kHost, 0), 1);
  EXPECT_DOUBLE_EQ(*calibration.predict(Path::ucx, kHost, 100), 1);
  EXPECT_NEAR(*calibration.predict(Path::ucx, kHost, 1000), 10, 1e-9);
  EXPECT_DOUBLE_EQ(*calibration.predict(Path::ucx, kHost, 10000), 100);
}

TEST(Calibration, goes_on_by_the_last_bandwidth) {
  Calibration calibration;
  calibration.add(Path::shm, kHost, {1000, 5});
  EXPECT_NEAR(*calibration.predict(Path::shm, kHost, 2000), 10, 1e-9) << "one point: its own bandwidth";
  calibration.add(Path::shm, kHost, {2000, 6});
  EXPECT_NEAR(*calibration.predict(Path::shm, kHost, 12000), 16, 1e-9) << "1 us per 1000 bytes";
  calibration.add(Path::shm, kHost, {3000, 5.5});
  EXPECT_GT(*calibration.predict(Path::shm, kHost, 30000), 5.5) << "larger is never free, whatever the noise";
  calibration.add(Path::shm, kHost, {3000, 7});
  EXPECT_DOUBLE_EQ(*calibration.predict(Path::shm, kHost, 3000), 7) << "replaced";
  EXPECT_EQ(calibration.points(Path::shm, kHost).size(), 3U);
}

TEST(Calibration, a_message_without_bytes_has_a_cost_too) {
  Calibration calibration;
  calibration.add(Path::ucx, kHost, {0, 2});
  calibration.add(Path::ucx, kHost, {1, 3});
  calibration.add(Path::ucx, kHost, {4, 3});
  for (const std::size_t bytes : {0U, 1U, 2U, 3U, 4U}) {
    EXPECT_GE(*calibration.predict(Path::ucx, kHost, bytes), 2) << bytes;
    EXPECT_LE(*calibration.predict(Path::ucx, kHost, bytes), 3.0001) << bytes;
  }
}

TEST(CalibrationText, reads_back_what_it_wrote) {
  Calibration calibration = Calibration::defaults();
  calibration.machine = {"0.1.0", "1.22.0", "CUDA 13.0 (driver 580.159)", "node7", {"GPU-a", "GPU-b"}};
  const Calibration read = parse_calibration(calibration_text(calibration), "text");
  EXPECT_EQ(calibration_text(read), calibration_text(calibration));
  EXPECT_EQ(read.machine.cuda, "CUDA 13.0 (driver 580.159)");
  EXPECT_EQ(read.machine.gpus, (std::vector<std::string>{"GPU-a", "GPU-b"}));
  EXPECT_NEAR(*read.predict(Path::copy_engine, kDevice, 65536), 8.8485, 0.01);
}

TEST(CalibrationText, takes_comments_blanks_and_other_line_ends) {
  const Calibration read =
      parse_calibration("# by hand\r\n\n brant-calibration 1\r\n  point  shm host\thost 8   0.5 \r\n", "text");
  EXPECT_DOUBLE_EQ(*read.predict(Path::shm, kHost, 8), 0.5);
}

TEST(CalibrationText, names_the_line_of_a_fault_and_the_cure) {
  struct Case {
    const char* text;
    const char* named;
  };
  const std::vector<Case> cases = {
      {"", "f:1: it does not begin"},
      {"brant-calibration 2\n", "f:1: it does not begin"},
      {"\x7f\x45LF\n", "f:1: it does not begin"},
      {"brant-calibration 1\npoints shm host host 8 1\n", "f:2: 'points' is no line"},
      {"brant-calibration 1\nucx\n", "f:2: 'ucx' is no line"},
      {"brant-calibration 1\n\n# x\npoint rdma host host 8 1\n", "f:4: 'rdma' is no path"},
      {"brant-calibration 1\npoint auto host host 8 1\n", "f:2: 'auto' is no path"},
      {"brant-calibration 1\npoint shm hst host 8 1\n", "f:2: 'hst' is no end"},
      {"brant-calibration 1\npoint shm host host -8 1\n", "f:2: '-8' is no number of bytes"},
      {"brant-calibration 1\npoint shm host host 99999999999999999999 1\n", "is no number of bytes"},
      {"brant-calibration 1\npoint shm host host 8\n", "f:2: '' is no time"},
      {"brant-calibration 1\npoint shm host host 8 0\n", "f:2: '0' is no time"},
      {"brant-calibration 1\npoint shm host host 8 nan\n", "f:2: 'nan' is no time"},
      {"brant-calibration 1\npoint shm host host 8 1us\n", "f:2: '1us' is no time"},
      {"brant-calibration 1\npoint shm host host 8 1 2\n", "f:2: '2' is too much"},
  };
  for (const Case& one : cases) {
    try {
      parse_calibration(one.text, "f");
      ADD_FAILURE() << "accepted: " << one.text;
    } catch (const Error& fault) {
      EXPECT_EQ(fault.status(), Status::invalid_argument);
      EXPECT_NE(std::string(fault.what()).find(one.named), std::string::npos) << fault.what();
      EXPECT_NE(std::string(fault.what()).find("brant calibrate"), std::string::npos) << fault.what();
    }
  }
}

TEST(CalibrationText, shows_little_of_a_damaged_line) {
  const std::string nul("a\0b\x1b[31m\n", 9);
  for (const std::string& damage :
       {std::string(200'000, 'x'), nul, "point shm host host 8 1 " + std::string(90'000, '\x01')}) {
    try {
      parse_calibration("brant-calibration 1\n" + damage, "f");
      ADD_FAILURE() << "accepted";
    } catch (const Error& fault) {
      const std::string text = fault.what();
      EXPECT_LT(text.size(), 300u);
      EXPECT_NE(text.find("brant calibrate"), std::string::npos) << text;
      EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; })) << text;
    }
  }
}

TEST(CalibrationStore, refuses_what_is_no_file_of_that_size) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe", large = folder.path() + "/large";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::ofstream(large) << "brant-calibration 1\n" << std::string(2 << 20, '\n') << "point shm host host 8 1\n";
  const ScratchFile empty("brant-calibration 1\nbrant 0.1.0\n");
  struct Case {
    std::string file;
    const char* refused;
  };
  for (const Case& one :
       {Case{pipe, "no regular file"}, Case{"/dev/zero", "no regular file"}, Case{folder.path(), "it is a folder"},
        Case{large, "longer than"}, Case{empty.path(), "no figure"}}) {
    const CalibrationInUse found = find_calibration(one.file, {});
    EXPECT_FALSE(found.measured) << one.file;
    EXPECT_NE(found.refused.find(one.refused), std::string::npos) << found.refused;
    EXPECT_NE(found.refused.find("brant calibrate"), std::string::npos) << found.refused;
  }
}

TEST(CalibrationStore, numbers_of_another_machine_do_not_fit) {
  const CalibratedMachine here{"0.1.0", "1.22.0", "CUDA 13.0", "a", {"GPU-a"}};
  EXPECT_EQ(why_unfit({}, here), "") << "what was not told fits";
  EXPECT_EQ(why_unfit({"0.1.0", "1.22.0", "CUDA 13.0", "b", {"GPU-b", "GPU-a"}}, here), "");
  EXPECT_NE(why_unfit({"0.2.0", "", "", "", {}}, here).find("brant 0.2.0"), std::string::npos);
  EXPECT_NE(why_unfit({"", "1.23.0", "", "", {}}, here).find("UCX 1.23.0"), std::string::npos);
  EXPECT_NE(why_unfit({"", "", "CUDA 12.0", "", {}}, here).find("CUDA 12.0"), std::string::npos);
  EXPECT_NE(why_unfit({"", "", "", "", {"GPU-b"}}, here).find("GPU-a"), std::string::npos);
  EXPECT_EQ(why_unfit({"", "", "CUDA 12.0", "", {"GPU-b"}}, {"0.1.0", "1.22.0", "", "a", {}}), "")
      << "a process without a GPU goes by the host's numbers";
  EXPECT_EQ(ucx_version_of("UCX 1.22.0 (/x/libucp.so)"), "1.22.0");
  EXPECT_EQ(ucx_version_of("in this process"), "") << "fits whatever was measured";
}

TEST(CalibrationStore, finds_a_file_that_fits_and_says_why_another_is_not_used) {
  const CalibratedMachine here{"0.1.0", "1.22.0", "", "", {}};
  const std::string point = "point shm host host 8 77\n";
  const ScratchFile fits("brant-calibration 1\nucx 1.22.0\n" + point);
  const CalibrationInUse used = find_calibration(fits.path(), here);
  EXPECT_TRUE(used.measured);
  EXPECT_EQ(used.refused, "");
  EXPECT_EQ(used.file, fits.path());
  EXPECT_DOUBLE_EQ(*used.calibration.predict(Path::shm, kHost, 8), 77);

  const ScratchFile stale("brant-calibration 1\nucx 1.21.0\n" + point);
  const ScratchFile endless("brant-calibration 1\nucx " + std::string(200'000, '9') + "\n" + point);
  EXPECT_LT(find_calibration(endless.path(), here).refused.size(), 500u);
  const ScratchFile broken("brant-calibration 1\npoint\n");
  struct Case {
    std::string file;
    const char* refused;
  };
  for (const Case& one : {Case{stale.path(), "UCX 1.21.0"}, Case{broken.path(), ":2: "},
                          Case{"/nonexistent/file", "cannot be read: No such file"}, Case{"/", "/"}}) {
    const CalibrationInUse found = find_calibration(one.file, here);
    EXPECT_FALSE(found.measured) << one.file;
    EXPECT_NE(found.refused.find(one.refused), std::string::npos) << found.refused;
    EXPECT_NE(found.refused.find("brant calibrate"), std::string::npos) << found.refused;
    EXPECT_LT(*found.calibration.predict(Path::shm, kHost, 8), 1) << "the built-in numbers";
  }
  for (const char* none : {"", "off"}) {
    EXPECT_FALSE(find_calibration(none, here).measured);
    EXPECT_EQ(find_calibration(none, here).refused, "");
  }
}

TEST(CalibrationStore, writes_in_one_step_with_the_folders_before_it) {
  const ScratchFile folder;
  const std::string file = folder.path() + "/deep/er/x.calibration";
  write_calibration(Calibration::defaults(), file);
  write_calibration(Calibration::defaults(), file);
  EXPECT_TRUE(find_calibration(file, {}).measured);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path() + "/deep/er"), {}), 1)
      << "no draft is left";
  EXPECT_THROW(write_calibration(Calibration::defaults(), file + "/below/a/file"), Error);
}

}  // namespace
}  // namespace brant
