#include "cli/calibrate/collectives.h"

#include <gtest/gtest.h>

namespace brant::cli::calibrate {
namespace {

WayTable table_of(std::vector<WayPoint> points) { return {"allreduce", "slots", "slices", std::move(points)}; }

TEST(CalibrateCollectives, ways_change_where_the_other_one_is_no_slower_from_then_on) {
  EXPECT_EQ(crossing(table_of({{1024, 1, 3}, {2048, 2, 3}, {4096, 4, 3}, {8192, 8, 4}})), 4096u);
  EXPECT_EQ(crossing(table_of({{1024, 3, 1}, {2048, 2, 3}, {4096, 4, 3}})), 4096u) << "a slow moment counts once";
  EXPECT_EQ(crossing(table_of({{1024, 3, 1}, {2048, 3, 3.01}})), 1024u) << "as good as equal";
  EXPECT_EQ(crossing(table_of({{1024, 1, 3}, {2048, 2, 3}})), 4096u) << "beyond what was measured";
}

TEST(CalibrateCollectives, the_text_has_a_row_for_each_size_and_a_line_for_each_band) {
  CollectiveFindings findings;
  findings.tables.push_back(table_of({{1024, 1.5, 3}, {2048, 2, 3}}));
  findings.bands = {{"slices", 2, 4096}, {"kernel_lines", 2, 65535}};
  findings.notes.emplace_back("not measured: something");
  const std::string text = to_text(findings, 2);
  EXPECT_NE(text.find("      1K           1.50           3.00\n"), std::string::npos) << text;
  EXPECT_NE(text.find("collectives of 2 members: slices from 4096 bytes\n"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel_lines up to 65535 bytes\n"), std::string::npos) << text;
  EXPECT_NE(text.find("not measured: something\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace brant::cli::calibrate
