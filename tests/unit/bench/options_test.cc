#include "bench/runner/options.h"

#include <string>

#include <gtest/gtest.h>

#include "bench/runner/plan.h"
#include "brant/base/status.h"

namespace brant::bench {
namespace {

TEST(BenchSizes, units_are_binary) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("8"), 8u);
  EXPECT_EQ(parse_size("8B"), 8u);
  EXPECT_EQ(parse_size("64K"), 65536u);
  EXPECT_EQ(parse_size("64k"), 65536u);
  EXPECT_EQ(parse_size("1MiB"), 1048576u);
  EXPECT_EQ(parse_size("5G"), std::size_t{5} << 30);
}

TEST(BenchSizes, what_is_no_size_is_refused_by_name) {
  for (const char* text :
       {"", "K", "12Q", "-3", " 8", "8 ", "1.5M", "8KK", "99999999999999999999", "99999999999999999G"}) {
    try {
      static_cast<void>(parse_size(text));
      FAIL() << "'" << text << "' was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("'" + std::string(text) + "'"), std::string::npos) << error.what();
    }
  }
}

TEST(BenchSizes, lists_are_ascending_and_unique) {
  EXPECT_EQ(parse_sizes("1M,8,64K,8"), (std::vector<std::size_t>{8, 65536, 1048576}));
  EXPECT_THROW(parse_sizes("8,,9"), Error);
  EXPECT_THROW(parse_sizes("8,"), Error);
  EXPECT_THROW(parse_sizes(""), Error);
}

TEST(BenchSizes, ranges_are_powers_of_two_with_both_ends) {
  EXPECT_EQ(sizes_between(1, 8), (std::vector<std::size_t>{1, 2, 4, 8}));
  EXPECT_EQ(sizes_between(8, 8), (std::vector<std::size_t>{8}));
  EXPECT_EQ(sizes_between(0, 2), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(sizes_between(3, 20), (std::vector<std::size_t>{3, 6, 12, 20}));
  EXPECT_EQ(sizes_between(0, 0), (std::vector<std::size_t>{0}));
  EXPECT_EQ(sizes_between(1, ~std::size_t{0}).size(), 65u);
  EXPECT_THROW(sizes_between(9, 8), Error);
}

TEST(BenchSizes, formatting_is_what_parsing_reads) {
  EXPECT_EQ(format_size(0), "0");
  EXPECT_EQ(format_size(1000), "1000");
  EXPECT_EQ(format_size(65536), "64K");
  EXPECT_EQ(format_size(std::size_t{3} << 40), "3072G");
  for (const std::size_t size : sizes_between(0, std::size_t{1} << 62)) EXPECT_EQ(parse_size(format_size(size)), size);
}

TEST(BenchPlan, larger_messages_are_measured_less_often_but_always_once) {
  for (const Kind kind : {Kind::latency, Kind::bandwidth}) {
    Options options;
    options.kind = kind;
    std::size_t last = ~std::size_t{0};
    for (const std::size_t size : sizes_between(0, std::size_t{1} << 40)) {
      const Plan plan = plan_for(options, size);
      EXPECT_LE(plan.iterations, last);
      EXPECT_GE(plan.iterations, 1u);
      EXPECT_GE(plan.warmup, 1u);
      EXPECT_GE(plan.checked, 1u);
      EXPECT_EQ(plan.rounds, 1u);
      last = plan.iterations;
    }
  }
}

TEST(BenchPlan, what_the_user_set_goes_first) {
  Options options;
  options.iterations = 3;
  options.warmup = 0;
  options.rival = Rival::ucx;
  const Plan plan = plan_for(options, 8);
  EXPECT_EQ(plan.iterations, 3u);
  EXPECT_EQ(plan.warmup, 0u);
  EXPECT_EQ(plan.rounds, 3u) << "contenders take turns, but no round may be empty";
}

TEST(BenchOptions, what_does_not_go_together_is_refused_by_name) {
  Options options;
  options.trigger = Trigger::stream;
  EXPECT_NO_THROW(require_sense(options));
  options.rival = Rival::nccl;
  options.memory = MemoryKind::cuda;
  EXPECT_NO_THROW(require_sense(options));
  const auto refusal = [&]() -> std::string {
    try {
      require_sense(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      return error.what();
    }
    return "none";
  };
  for (const MemoryKind memory :
       {MemoryKind::host, MemoryKind::pinned, MemoryKind::cuda_managed, MemoryKind::emulated}) {
    options.memory = memory;
    EXPECT_NE(refusal().find("--memory cuda"), std::string::npos) << refusal();
    EXPECT_NE(refusal().find(memory_kind_name(memory)), std::string::npos) << refusal();
  }
  options.rival = Rival::none;
  options.model = Model::message;
  EXPECT_NE(refusal().find("--model channel"), std::string::npos) << refusal();
}

TEST(BenchOptions, words_that_are_counted_in_have_4_or_8_bytes) {
  Options options;
  options.model = Model::fetch_add;
  options.sizes = {4, 8};
  EXPECT_NO_THROW(require_sense(options));
  options.sizes = {8, 64};
  EXPECT_THROW(require_sense(options), Error);
}

TEST(BenchOptions, puts_that_tell_have_bytes_and_no_rival) {
  Options options;
  options.model = Model::told_put;
  options.sizes = {1, 8};
  EXPECT_NO_THROW(require_sense(options));
  options.sizes = {0, 8};
  EXPECT_THROW(require_sense(options), Error);
  options.sizes = {8};
  options.rival = Rival::ucx;
  EXPECT_THROW(require_sense(options), Error);
}

TEST(BenchOptions, calls_have_no_rival) {
  Options options;
  options.model = Model::rpc;
  options.sizes = {0, 8};
  EXPECT_NO_THROW(require_sense(options));
  options.rival = Rival::ucx;
  EXPECT_THROW(require_sense(options), Error);
}

TEST(BenchOptions, memory_made_elsewhere_is_refused_where_nobody_makes_it) {
  const auto accepts = [](Alloc alloc, MemoryKind memory, Model model = Model::channel) {
    Options options;
    options.alloc = alloc;
    options.memory = memory;
    options.model = model;
    try {
      require_sense(options);
      return true;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("--alloc ") + alloc_name(alloc)), std::string::npos);
      return false;
    }
  };
  EXPECT_TRUE(accepts(Alloc::malloc, MemoryKind::host));
  EXPECT_TRUE(accepts(Alloc::torch_like, MemoryKind::host));
  EXPECT_TRUE(accepts(Alloc::cuda, MemoryKind::cuda));
  EXPECT_TRUE(accepts(Alloc::torch_like, MemoryKind::cuda, Model::message));
  EXPECT_TRUE(accepts(Alloc::malloc, MemoryKind::host, Model::put));
  EXPECT_TRUE(accepts(Alloc::library, MemoryKind::emulated));
  EXPECT_FALSE(accepts(Alloc::malloc, MemoryKind::cuda));
  EXPECT_FALSE(accepts(Alloc::cuda, MemoryKind::host));
  for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::emulated, MemoryKind::cuda_managed}) {
    EXPECT_FALSE(accepts(Alloc::torch_like, kind));
  }
  EXPECT_FALSE(accepts(Alloc::malloc, MemoryKind::host, Model::message));
}

std::string refusal_of(const Options& options) {
  try {
    require_sense(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
  return {};
}

TEST(BenchOptions, of_mpi_are_those_that_its_programs_have) {
  Options options;
  options.model = Model::mpi;
  options.alloc = Alloc::malloc;
  options.sizes = {8};
  EXPECT_EQ(refusal_of(options), "");
  options.sizes = {8, std::size_t{1} << 31};
  EXPECT_NE(refusal_of(options).find("use smaller sizes"), std::string::npos);
  options.sizes = {8};
  options.path = Path::shm;
  EXPECT_NE(refusal_of(options).find("BRANT_PATH=shm"), std::string::npos);
  options.path = Path::automatic;
  options.rival = Rival::ucx;
  EXPECT_NE(refusal_of(options).find("--peer ucx with --model mpi"), std::string::npos);
}

}  // namespace
}  // namespace brant::bench
