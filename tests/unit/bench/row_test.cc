#include "bench/runner/row.h"

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/runner/table.h"
#include "brant/base/status.h"

namespace brant::bench {
namespace {

Row example() {
  Row row;
  row.memory = MemoryKind::cuda;
  row.path = "staged";
  row.bytes = 1000;
  row.us = {10, 0.5, 2, 9.00004};
  return row;
}

TEST(BenchRow, has_exactly_the_fields_every_benchmark_has) {
  const Machine machine{"0.1.0", "1.22.0", "", "", "a cpu", "a host"};
  const auto json = nlohmann::ordered_json::parse(to_json(example(), machine));
  std::vector<std::string> names;
  for (const auto& [name, value] : json.items()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"bench", "model", "memory", "alloc", "trigger", "path", "bytes", "window",
                                             "ranks", "n", "us", "gb_s", "peer", "brant", "ucx", "cuda", "gpu", "cpu",
                                             "host"}));
  EXPECT_EQ(json["bench"], "latency");
  EXPECT_EQ(json["memory"], "cuda");
  EXPECT_EQ(json["alloc"], "library");
  EXPECT_EQ(json["us"], (nlohmann::ordered_json{{"min", 0.5}, {"p50", 2.0}, {"p99", 9.0}}));
  EXPECT_DOUBLE_EQ(json["gb_s"].get<double>(), 0.5);
  EXPECT_TRUE(json["peer"].is_null()) << "our own rows have no peer";
  EXPECT_TRUE(json["gpu"].is_null());
}

TEST(BenchRow, a_rival_has_a_name_and_the_version_that_was_measured) {
  Row row = example();
  row.peer = "nccl";
  row.peer_version = "2.28.3";
  const auto json = nlohmann::ordered_json::parse(to_json(row, {}));
  EXPECT_EQ(json["peer"], "nccl");
  EXPECT_EQ(json["peer_version"], "2.28.3");
}

TEST(BenchRow, bandwidth_counts_the_whole_window) {
  Row row = example();
  row.kind = Kind::bandwidth;
  row.window = 64;
  EXPECT_DOUBLE_EQ(row.gb_s(), 64 * 1000 / 2.0 / 1e3);
  row.us.p50 = 0;
  EXPECT_EQ(row.gb_s(), 0);
}

TEST(BenchRow, counts_messages_of_both_directions) {
  Row row = example();
  row.kind = Kind::bidirectional;
  row.window = 64;
  EXPECT_DOUBLE_EQ(row.rate(), 2 * 64 / 2.0);
  EXPECT_DOUBLE_EQ(row.gb_s(), 2 * 64 * 1000 / 2.0 / 1e3);
  const auto json = nlohmann::ordered_json::parse(to_json(row, {}));
  EXPECT_EQ(json["bench"], "bidirectional");
  EXPECT_DOUBLE_EQ(json["m_s"].get<double>(), 64);
}

TEST(BenchRowFile, appends_whole_lines) {
  const std::string path = testing::TempDir() + "bench_rows.jsonl";
  std::remove(path.c_str());
  RowFile(path).append("one");
  RowFile(path).append("two");
  std::ifstream file(path);
  std::string first, second, third;
  std::getline(file, first);
  std::getline(file, second);
  EXPECT_EQ(first, "one");
  EXPECT_EQ(second, "two");
  EXPECT_FALSE(std::getline(file, third));
  std::remove(path.c_str());
}

TEST(BenchRowFile, a_file_that_cannot_be_opened_is_named) {
  try {
    RowFile file("/nonexistent/rows.jsonl");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::io_error);
    EXPECT_NE(std::string(error.what()).find("/nonexistent/rows.jsonl"), std::string::npos);
  }
}

TEST(BenchRowFile, without_a_file_nothing_happens) { RowFile().append("lost"); }

TEST(BenchTable, header_and_lines_have_one_width) {
  for (const Kind kind : {Kind::latency, Kind::bandwidth, Kind::bidirectional}) {
    const Table table(kind, "nccl");
    Row ours = example();
    ours.kind = kind;
    Row rival = ours;
    rival.us.p50 = 4;
    EXPECT_EQ(table.header().size(), table.line(ours, rival).size());
    EXPECT_EQ(table.header().size(), table.line(ours, std::nullopt).size());
    EXPECT_NE(table.header().find(kind == Kind::latency ? "nccl p50 us" : "nccl GB/s"), std::string::npos);
    EXPECT_EQ(Table(kind, "").header().find("ratio"), std::string::npos);
    EXPECT_NE(table.line(ours, rival).find(kind == Kind::latency ? "0.50x" : "2.00x"), std::string::npos);
  }
}

}  // namespace
}  // namespace brant::bench
