#include "cli/calibrate/table.h"

#include <gtest/gtest.h>

namespace brant::cli::calibrate {
namespace {

constexpr EndPair kHost{false, false};
constexpr EndPair kDevice{true, true};

TEST(CalibrateTable, crossovers_go_through_all_sizes) {
  Findings findings;
  for (const auto& [bytes, shm, ucx] : {std::tuple{8, 1.0, 2.0}, std::tuple{8192, 2.0, 2.5},
                                        std::tuple{65536, 9.0, 4.0}, std::tuple{8 << 20, 500.0, 900.0}}) {
    findings.calibration.add(Path::shm, kHost, {static_cast<std::size_t>(bytes), shm});
    findings.calibration.add(Path::ucx, kHost, {static_cast<std::size_t>(bytes), ucx});
  }
  const std::string text = crossovers(findings, kHost);
  EXPECT_EQ(text.substr(0, 10), "shm up to ") << text;
  EXPECT_NE(text.find(", ucx up to "), std::string::npos) << text;
  EXPECT_EQ(text.substr(text.size() - 10), ", then shm") << text;
}

TEST(CalibrateTable, a_crossover_beyond_what_was_measured_is_said_to_be_a_guess) {
  Findings findings;
  for (const auto& [bytes, shm, ucx] :
       {std::tuple{8, 1.0, 2000.0}, std::tuple{8 << 20, 1000.0, 2900.0}, std::tuple{16 << 20, 2000.0, 3000.0}}) {
    findings.calibration.add(Path::shm, kHost, {static_cast<std::size_t>(bytes), shm});
    findings.calibration.add(Path::ucx, kHost, {static_cast<std::size_t>(bytes), ucx});
  }
  const std::string text = crossovers(findings, kHost);
  EXPECT_EQ(text.substr(0, 10), "shm up to ") << text;
  EXPECT_NE(text.find("M (above 16M: extrapolated), then ucx"), std::string::npos) << text;
}

TEST(CalibrateTable, the_courier_ends_where_it_takes_no_more) {
  Findings findings;
  findings.courier_bytes = 512 << 10;
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{512} << 10}) {
    findings.calibration.add(Path::courier, kDevice, {bytes, 3});
    findings.calibration.add(Path::copy_engine, kDevice, {bytes, 8});
  }
  EXPECT_EQ(crossovers(findings, kDevice), "courier up to 512K, then copy_engine");
  findings.calibration.add(Path::copy_engine, kDevice, {8, 1});
  EXPECT_NE(to_text(findings).find("device to device, microseconds one way"), std::string::npos);
  EXPECT_NE(to_text(findings).find("       8         3.00         1.00  copy_engine"), std::string::npos)
      << to_text(findings);
}

TEST(CalibrateTable, one_path_alone_has_no_crossover_and_notes_are_shown) {
  Findings findings;
  findings.calibration.add(Path::ucx, kHost, {8, 1});
  findings.notes.emplace_back("not measured: host memory, shm: no link");
  EXPECT_EQ(crossovers(findings, kHost), "ucx");
  EXPECT_NE(to_text(findings).find("not measured: host memory, shm: no link\n"), std::string::npos);
}

}  // namespace
}  // namespace brant::cli::calibrate
