#include "report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace jacobi {
namespace {

RunReport report_of(const char* path, brant::MemoryKind memory, double communication) {
  RunReport run;
  run.path = path;
  run.memory = memory;
  run.decomposition = {{8, 8, 16}, {1, 1, 2}};
  run.iterations = 3;
  run.timing = {
      .iteration = communication + 50, .compute = 50, .communication = communication, .samples = {30, 10, 20}};
  run.halo_bytes = 512;
  run.copy_bandwidth = 100e9;
  run.sweep_bandwidth = 80e9;
  return run;
}

TEST(Report, speed_up_over_staged_is_given_for_device_memory) {
  const std::vector<RunReport> runs = {report_of("ucx", brant::MemoryKind::cuda, 10),
                                       report_of("staged", brant::MemoryKind::cuda, 124)};
  const std::string text = table(runs, &runs[1]);
  EXPECT_NE(text.find("12.40 x"), std::string::npos) << text;
  EXPECT_NE(text.find("80.0 % of 100.0"), std::string::npos) << text;
  const auto row = nlohmann::json::parse(json_row(runs[0], &runs[1], {}));
  EXPECT_DOUBLE_EQ(row["speedup_vs_staged"]["communication"], 12.4);
  EXPECT_DOUBLE_EQ(row["memory_bandwidth_fraction"], 0.8);
}

TEST(Report, host_memory_gets_an_explanation_instead_of_a_speed_up) {
  const std::vector<RunReport> runs = {report_of("auto", brant::MemoryKind::host, 10),
                                       report_of("staged", brant::MemoryKind::host, 11)};
  const std::string text = table(runs, &runs[1]);
  EXPECT_EQ(text.find(" x\n"), std::string::npos) << text;
  EXPECT_NE(text.find("nothing to stage"), std::string::npos) << text;
  EXPECT_TRUE(nlohmann::json::parse(json_row(runs[0], &runs[1], {}))["speedup_vs_staged"].is_null());
}

TEST(Report, one_process_alone_gets_no_speed_up) {
  std::vector<RunReport> runs = {report_of("auto", brant::MemoryKind::cuda, 9),
                                 report_of("staged", brant::MemoryKind::cuda, 8)};
  for (RunReport& run : runs) run.halo_bytes = 0;
  EXPECT_NE(table(runs, &runs[1]).find("exchanges nothing"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(json_row(runs[0], &runs[1], {}))["speedup_vs_staged"].is_null());
}

TEST(Report, rows_have_the_fields_that_all_benchmarks_have) {
  const auto row = nlohmann::json::parse(json_row(report_of("ucx", brant::MemoryKind::emulated, 10), nullptr, {}));
  for (const char* field : {"bench", "model", "memory", "trigger", "path", "bytes", "window", "ranks", "n", "us",
                            "gb_s", "peer", "brant", "ucx", "cuda", "gpu", "cpu", "host"}) {
    EXPECT_TRUE(row.contains(field)) << field;
  }
  EXPECT_EQ(row["us"]["min"], 10.0);
  EXPECT_EQ(row["us"]["p50"], 20.0);
  EXPECT_EQ(row["us"]["p99"], 30.0);
  EXPECT_EQ(row["ranks"], 2);
}

TEST(Report, a_row_that_cannot_be_written_is_an_error_naming_the_file) {
  try {
    append_line("/nonexistent/rows.jsonl", "{}");
    FAIL();
  } catch (const brant::Error& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/rows.jsonl"), std::string::npos);
  }
}

}  // namespace
}  // namespace jacobi
