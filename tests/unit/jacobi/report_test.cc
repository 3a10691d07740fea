#include "report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/in_process_job.h"

namespace jacobi {
namespace {

Report run_of(brant::Path path, brant::MemoryKind memory, double communication) {
  Report run;
  run.options.size = {10, 10, 20};
  run.options.plan.iterations = 3;
  run.blocks = {1, 1, 2};
  run.memory = memory;
  run.figures = {.iteration = communication + 50, .compute = 50, .communication = communication};
  run.figures.path_bytes[static_cast<std::size_t>(path)] = 1000;
  run.figures.halo_bytes = 512;
  run.figures.copy_bandwidth = 800e6;  // 32,000 bytes in 50 us are 640 MB/s
  run.samples = {30, 10, 20};
  return run;
}

class Reports : public testing::Test {
 protected:
  nlohmann::json row(const Report& run, const Report* staged = nullptr) {
    return nlohmann::json::parse(json_row(run, staged, job_.rank(0)));
  }

  brant::test::InProcessJob job_{brant::test::ranks(1)};
};

TEST_F(Reports, speed_up_over_staged_is_given_for_device_memory) {
  const std::vector<Report> runs = {run_of(brant::Path::ucx, brant::MemoryKind::cuda, 10),
                                    run_of(brant::Path::staged, brant::MemoryKind::cuda, 124)};
  const std::string text = table(runs, &runs[1]);
  EXPECT_NE(text.find("12.40 x"), std::string::npos) << text;
  EXPECT_NE(text.find("80.0 % of 0.8"), std::string::npos) << text;
  EXPECT_DOUBLE_EQ(row(runs[0], &runs[1])["speedup_vs_staged"]["communication"], 12.4);
  EXPECT_DOUBLE_EQ(row(runs[0], &runs[1])["memory_bandwidth_fraction"], 0.8);
}

TEST_F(Reports, host_memory_gets_an_explanation_instead_of_a_speed_up) {
  const std::vector<Report> runs = {run_of(brant::Path::shm, brant::MemoryKind::host, 10),
                                    run_of(brant::Path::shm, brant::MemoryKind::host, 11)};
  const std::string text = table(runs, &runs[1]);
  EXPECT_EQ(text.find(" x\n"), std::string::npos) << text;
  EXPECT_NE(text.find("nothing to stage"), std::string::npos) << text;
  EXPECT_TRUE(row(runs[0], &runs[1])["speedup_vs_staged"].is_null());
}

TEST_F(Reports, one_process_alone_gets_no_speed_up) {
  std::vector<Report> runs = {run_of(brant::Path::ucx, brant::MemoryKind::cuda, 9),
                              run_of(brant::Path::staged, brant::MemoryKind::cuda, 8)};
  for (Report& run : runs) run.figures.halo_bytes = 0;
  EXPECT_NE(table(runs, &runs[1]).find("exchanges nothing"), std::string::npos);
  EXPECT_TRUE(row(runs[0], &runs[1])["speedup_vs_staged"].is_null());
}

TEST(Figures, of_several_processes_are_summed_and_the_path_is_that_of_most_bytes) {
  Figures all;
  EXPECT_EQ(all.path(), "none");
  for (const brant::Path path : {brant::Path::ucx, brant::Path::courier, brant::Path::ucx}) {
    all.join(run_of(path, brant::MemoryKind::cuda, 10).figures);
  }
  EXPECT_EQ(all.path(), "ucx");
  EXPECT_EQ(all.iteration, 180.0);
  EXPECT_EQ(all.halo_bytes, 512.0) << "of the process that sends most";
}

TEST_F(Reports, rows_have_the_fields_that_all_benchmarks_have) {
  const nlohmann::json json = row(run_of(brant::Path::ucx, brant::MemoryKind::emulated, 10));
  for (const char* field : {"bench", "model", "memory", "trigger", "path", "bytes", "window", "ranks", "n", "us",
                            "gb_s", "peer", "brant", "ucx", "cuda", "gpu", "cpu", "host"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  EXPECT_EQ(json["us"]["min"], 10.0);
  EXPECT_EQ(json["us"]["p50"], 20.0);
  EXPECT_EQ(json["us"]["p99"], 30.0);
  EXPECT_EQ(json["ranks"], 1);
}

}  // namespace
}  // namespace jacobi
