#include "bench/rma/rma.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/rma/rows.h"
#include "tests/unit/bench/status_of.h"

namespace brant::bench {
namespace {

std::string names_of(const std::vector<RmaPattern>& patterns) {
  std::string names;
  for (const RmaPattern& pattern : patterns) names += pattern_name(pattern) + " ";
  return names;
}

RmaBench some() {
  RmaBench bench;
  bench.sizes = {8, 64};
  return bench;
}

TEST(RmaPatterns, AreSixAndHaveNames) { EXPECT_EQ(names_of(all_patterns()), "gg sg pg gs ss ps "); }

TEST(RmaPatterns, AreReadEachOnceInOneOrder) {
  EXPECT_EQ(names_of(parse_patterns("sg")), "sg ");
  EXPECT_EQ(names_of(parse_patterns("ps,gg,ps")), "gg ps ");
  EXPECT_EQ(parse_patterns("sg").front(), (RmaPattern{RmaMemory::shared, RmaMemory::device}));
  EXPECT_EQ(parse_patterns("pg").front(), (RmaPattern{RmaMemory::private_, RmaMemory::device}));
}

TEST(RmaPatterns, ThatAreNoneAreRefused) {
  // Nobody reaches private memory over there.
  for (const char* const list : {"", "sp", "pp", "gp", "g", "ggg", "ss,", "ss,,gg", "all,ss", "SS"})
    EXPECT_EQ(status_of([&] { parse_patterns(list); }), Status::invalid_argument) << list;
}

TEST(RmaPatterns, WithADeviceAtEitherEndNeedOne) {
  std::string need;
  for (const RmaPattern& pattern : all_patterns()) need += pattern.needs_device() ? pattern_name(pattern) + " " : "";
  EXPECT_EQ(need, "gg sg pg gs ");
}

TEST(RmaCases, PutsAloneAreNotifiedAndOnlyBlocksGoOneByOne) {
  RmaBench bench = some();
  bench.syncs = {RmaSync::block, RmaSync::notify};
  bench.window = 16;
  std::string all;
  for (const RmaCase& each : cases_of(bench, all_patterns().front()))
    all += std::string(direction_name(each.direction)) + " " + sync_name(each.sync) + " " + std::to_string(each.bytes) +
           "x" + std::to_string(each.window) + "; ";
  EXPECT_EQ(all, "put block 8x1; put block 64x1; put notify 8x16; put notify 64x16; get block 8x1; get block 64x1; ");
}

TEST(RmaCases, NonsenseIsRefused) {
  require_sense(some());
  const auto refused = [](auto change) {
    RmaBench bench = some();
    change(bench);
    return status_of([&] { require_sense(bench); }) == Status::invalid_argument;
  };
  EXPECT_TRUE(refused([](RmaBench& bench) { bench.sizes = {0, 8}; }));
  EXPECT_TRUE(refused([](RmaBench& bench) { bench.sizes.clear(); }));
  EXPECT_TRUE(refused([](RmaBench& bench) {
    bench.directions = {RmaDirection::get};
    bench.syncs = {RmaSync::flood, RmaSync::notify};
  }));
  EXPECT_TRUE(refused([](RmaBench& bench) {
    bench.syncs = {RmaSync::notify};
    bench.busy_target = true;
  }));
  EXPECT_TRUE(refused([](RmaBench& bench) {
    bench.patterns = parse_patterns("ss,sg");
    bench.device = GpuChoice::none;
  }));
  EXPECT_FALSE(refused([](RmaBench& bench) { bench.device = GpuChoice::none; }));  // all that there are
}

TEST(RmaBusyTarget, WhatLastsAsLongAsItsComputingHasWaitedForIt) {
  constexpr std::chrono::milliseconds kSpan{100};
  EXPECT_EQ(waited_for_target(95'000, 20, kSpan), true);
  EXPECT_EQ(waited_for_target(150'000, 24'000, kSpan), true);
  EXPECT_EQ(waited_for_target(20, 20, kSpan), false);
  EXPECT_EQ(waited_for_target(26'000, 24'000, kSpan), false);
  EXPECT_EQ(waited_for_target(95'000, 26'000, kSpan), std::nullopt);  // it may take that long at all times
}

RmaRow row_of(RmaSync sync) {
  RmaRow row;
  row.which = {RmaDirection::put, parse_patterns("pg").front(), sync, 1000, sync == RmaSync::block ? 1u : 10u};
  row.remote = MemoryKind::cuda;
  row.path = "copy_engine";
  row.us = {.n = 5, .min = 1, .p50 = 2, .p99 = 3, .max = 3};
  return row;
}

TEST(RmaRows, RatesAreOfTransfers) {
  EXPECT_DOUBLE_EQ(row_of(RmaSync::block).rate(), 0.5);
  EXPECT_DOUBLE_EQ(*row_of(RmaSync::block).gb_s(), 0.5);
  EXPECT_DOUBLE_EQ(row_of(RmaSync::flood).rate(), 5);
  EXPECT_DOUBLE_EQ(*row_of(RmaSync::notify).gb_s(), 5);
  EXPECT_DOUBLE_EQ(row_of(RmaSync::inject).rate(), 0.5);  // each sample is one post already
  EXPECT_FALSE(row_of(RmaSync::inject).gb_s().has_value());
}

TEST(RmaRows, SayWhoWhatAndWhere) {
  RmaRow row = row_of(RmaSync::inject);
  nlohmann::json json = nlohmann::json::parse(to_json(row, Machine{}));
  EXPECT_EQ(json["bench"], "rma");
  EXPECT_EQ(json["model"], "put");
  EXPECT_EQ(json["pattern"], "pg");
  EXPECT_EQ(json["memory"], "host");
  EXPECT_EQ(json["remote_memory"], "cuda");
  EXPECT_TRUE(json["gb_s"].is_null());
  EXPECT_EQ(json["target"], "idle");
  EXPECT_FALSE(json.contains("waited"));
  EXPECT_TRUE(json["peer"].is_null());
  EXPECT_EQ(rma_line(row).size(), rma_header().size());

  row.busy_target = true;
  row.waited = true;
  row.peer = "mpi";
  row.peer_version = "Open MPI v5.0.11";
  json = nlohmann::json::parse(to_json(row, Machine{}));
  EXPECT_EQ(json["target"], "busy");
  EXPECT_EQ(json["waited"], true);
  EXPECT_EQ(json["peer_version"], row.peer_version);
  EXPECT_EQ(rma_line(row).size(), rma_header().size());

  row.waited.reset();
  EXPECT_TRUE(nlohmann::json::parse(to_json(row, Machine{}))["waited"].is_null());
}

}  // namespace
}  // namespace brant::bench
