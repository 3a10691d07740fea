#include "bench/memspeed/memspeed.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/memspeed/access.h"
#include "bench/memspeed/rows.h"
#include "tests/unit/bench/status_of.h"

namespace brant::bench {
namespace {

TEST(MemspeedRate, LeavesOutWhatEveryCopyCosts) {
  EXPECT_DOUBLE_EQ(*rate_without_start(1'000'000, 110, 10), 10);
  EXPECT_DOUBLE_EQ(*rate_without_start(1'000'000, 100, 0), 10);
  EXPECT_FALSE(rate_without_start(1'000'000, 10, 10).has_value());
  EXPECT_FALSE(rate_without_start(1'000'000, 9, 10).has_value());
}

TEST(MemspeedAccess, QuadraticStepsVisitEachPlaceOnce) {
  for (const std::size_t places : {1, 2, 8, 1024, 65536}) {
    QuadraticSteps steps(places);
    std::vector<int> visits(places);
    for (std::size_t i = 0; i < places; ++i) ++visits.at(steps.next());
    EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), static_cast<std::ptrdiff_t>(places)) << places;
  }
}

TEST(MemspeedAccess, EachStepIsOneLonger) {
  QuadraticSteps steps(std::size_t{1} << 20);
  std::size_t before = steps.next();
  EXPECT_EQ(before, 0u);
  for (std::size_t length = 1; length < 100; ++length) {
    const std::size_t here = steps.next();
    EXPECT_EQ(here - before, length);
    before = here;
  }
}

TEST(MemspeedAccess, PowersOfTwo) {
  EXPECT_EQ(power_of_two_within(0), 0u);
  EXPECT_EQ(power_of_two_within(1), 1u);
  EXPECT_EQ(power_of_two_within(1023), 512u);
  EXPECT_EQ(power_of_two_within(1024), 1024u);
}

TEST(MemspeedAccess, AChaseVisitsEachLineOnceAndComesBack) {
  std::vector<std::uint64_t> words(1000 * kWordsOfLine, ~std::uint64_t{0});
  const std::size_t lines = link_lines(words);
  ASSERT_EQ(lines, 512u);
  std::vector<int> visits(lines);
  std::uint64_t at = 0;
  for (std::size_t hop = 0; hop < lines; ++hop) {
    at = chase(words, 1, at);
    ASSERT_EQ(at % kWordsOfLine, 0u);
    ++visits.at(at / kWordsOfLine);
  }
  EXPECT_EQ(at, 0u);
  EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), 512);
  EXPECT_EQ(chase(words, lines, 0), 0u);
  EXPECT_EQ(link_lines(std::span(words).first(kWordsOfLine - 1)), 0u);
}

TEST(MemspeedAccess, PassesTouchWhatTheySay) {
  std::vector<std::uint64_t> words(64);
  write_in_order(words, 7);
  EXPECT_EQ(words.front(), 7u);
  EXPECT_EQ(words.back(), 70u);
  EXPECT_EQ(read_in_order(words, 1), std::accumulate(words.begin(), words.end(), std::uint64_t{1}));
  QuadraticSteps reads(64), writes(64);
  EXPECT_EQ(read_scattered(words, reads, 64, 1), std::accumulate(words.begin(), words.end(), std::uint64_t{1}));
  std::fill(words.begin(), words.end(), 0);
  EXPECT_EQ(write_scattered(words, writes, 3, 10), 13u);  // at places 0, 1 and 3
  EXPECT_EQ(words[0], 11u);
  EXPECT_EQ(words[1], 12u);
  EXPECT_EQ(words[2], 0u);
  EXPECT_EQ(words[3], 13u);
}

TEST(Memspeed, SizesThatCannotBeMeasuredAreRefused) {
  Memspeed asked;
  require_sense(asked);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, kMemoryBytesMin - 8, kMemoryBytesMin + 4}) {
    asked.bytes = bytes;
    EXPECT_EQ(status_of([&] { require_sense(asked); }), Status::invalid_argument) << bytes;
  }
}

TEST(MemspeedRows, ACopyHasBothTimesAndBothPaths) {
  CopyRow row;
  row.how = "put";
  row.from = "host";
  row.to = "1:cuda";
  row.to_kind = MemoryKind::cuda;
  row.path = "copy_engine";
  row.short_path = "staged";
  row.bytes = 1'000'000;
  row.full_us = {.n = 8, .min = 100, .p50 = 110, .p99 = 120, .max = 120};
  row.short_us = {.n = 200, .min = 9, .p50 = 10, .p99 = 11, .max = 12};
  const nlohmann::json json = nlohmann::json::parse(to_json(row, Machine{}));
  EXPECT_EQ(json["bench"], "memspeed_copy");
  EXPECT_EQ(json["gb_s"], 10);
  EXPECT_EQ(json["us"]["p50"], 110);
  EXPECT_EQ(json["short_us"]["p50"], 10);
  EXPECT_EQ(json["memory"], "host");
  EXPECT_EQ(json["to_memory"], "cuda");
  EXPECT_NE(copy_line(row).find("copy_engine, staged"), std::string::npos);
  EXPECT_EQ(copy_line(row).size(), copy_header().size());

  row.short_us = row.full_us;  // nothing can be said
  EXPECT_TRUE(nlohmann::json::parse(to_json(row, Machine{}))["gb_s"].is_null());
}

TEST(MemspeedRows, AnAccessHasItsNanoseconds) {
  AccessRow row;
  row.memory = "pinned";
  row.kind = MemoryKind::pinned;
  row.what = "pointer chase";
  row.accesses = 1000;
  row.bytes = 8000;
  row.us = {.n = 8, .min = 99, .p50 = 100, .p99 = 101, .max = 101};
  EXPECT_DOUBLE_EQ(row.ns_per_access(), 100);
  const nlohmann::json json = nlohmann::json::parse(to_json(row, Machine{}));
  EXPECT_EQ(json["ns_per_access"], 100);
  EXPECT_EQ(json["gb_s"], 0.08);
  EXPECT_EQ(access_line(row).size(), access_header().size());
}

}  // namespace
}  // namespace brant::bench
