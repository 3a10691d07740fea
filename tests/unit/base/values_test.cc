#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/env.h"
#include "brant/base/buffer.h"
#include "brant/base/result.h"
#include "brant/base/status.h"

namespace brant {
namespace {

const std::vector<Status> kAll = {Status::ok,
                                  Status::in_progress,
                                  Status::invalid_argument,
                                  Status::wrong_kind,
                                  Status::truncated,
                                  Status::limit_reached,
                                  Status::not_supported,
                                  Status::not_found,
                                  Status::peer_lost,
                                  Status::peer_rejected,
                                  Status::version_mismatch,
                                  Status::no_memory,
                                  Status::device_failed,
                                  Status::canceled,
                                  Status::timed_out,
                                  Status::shutting_down,
                                  Status::io_error,
                                  Status::internal};

TEST(Status, every_value_has_a_name_and_a_text_of_its_own) {
  std::set<std::string_view> names;
  std::set<std::string_view> texts;
  for (const Status status : kAll) {
    names.insert(status_name(status));
    texts.insert(status_text(status));
  }
  EXPECT_EQ(names.size(), kAll.size());
  EXPECT_EQ(texts.size(), kAll.size());
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_EQ(status_name(static_cast<Status>(-5)), "unknown");
}

TEST(Result, holds_a_value_or_a_reason) {
  const Result<std::string> value(std::string("x"));
  EXPECT_TRUE(value.ok());
  EXPECT_EQ(*value, "x");
  const Result<std::string> reason(Status::no_memory);
  EXPECT_FALSE(reason);
  EXPECT_EQ(reason.status(), Status::no_memory);
}

TEST(ResultDeathTest, reading_a_missing_value_ends_the_program) {
  const Result<int> missing(Status::not_found);
  EXPECT_DEATH({ static_cast<void>(*missing); }, "");
}

TEST(MemoryKind, names_read_back) {
  for (int index = 0; index < kMemoryKindCount; ++index) {
    const auto kind = static_cast<MemoryKind>(index);
    MemoryKind read = MemoryKind::detect;
    ASSERT_TRUE(memory_kind_from_name(memory_kind_name(kind), read));
    EXPECT_EQ(read, kind);
  }
  MemoryKind untouched = MemoryKind::cuda;
  EXPECT_FALSE(memory_kind_from_name("gpu", untouched));
  EXPECT_EQ(untouched, MemoryKind::cuda);
}

TEST(Buffer, views_a_span_and_narrows_to_const) {
  std::vector<double> values(3);
  const Buffer buffer{std::span(values)};
  EXPECT_EQ(buffer.bytes, 24u);
  const ConstBuffer view = buffer;
  EXPECT_EQ(view.data, values.data());
  EXPECT_EQ(view.kind, MemoryKind::detect);
}

/// What `read` throws.
template <typename Read>
std::string refusal(Read&& read) {
  try {
    read();
  } catch (const Error& fault) {
    EXPECT_EQ(fault.status(), Status::invalid_argument);
    return fault.what();
  }
  return "accepted";
}

TEST(Env, nonsense_is_refused_by_name_with_what_is_allowed) {
  const EnvRange range{0, 100, "milliseconds"};
  for (const char* value : {"abc", "-1", "101", "5ms", "999999999999999999999", " 5"}) {
    ::setenv("BRANT_TEST_VALUE", value, 1);
    EXPECT_EQ(refusal([&] { static_cast<void>(env_int_in("BRANT_TEST_VALUE", 7, range)); }),
              std::string("BRANT_TEST_VALUE=") + value + ": use whole milliseconds, 0 to 100");
  }
  ::setenv("BRANT_TEST_VALUE", "maybe", 1);
  EXPECT_EQ(
      refusal([] { static_cast<void>(env_bool("BRANT_TEST_VALUE", true)); }).find("BRANT_TEST_VALUE=maybe: use on"),
      0u);
  EXPECT_TRUE(env_bool_or_warn("BRANT_TEST_VALUE", true));
  EXPECT_FALSE(env_bool_or_warn("BRANT_TEST_VALUE", false));
  ::setenv("BRANT_TEST_VALUE", "", 1);
  EXPECT_EQ(env_int_in("BRANT_TEST_VALUE", 7, range), 7) << "empty is as good as unset";
  EXPECT_TRUE(env_bool("BRANT_TEST_VALUE", true));
  ::setenv("BRANT_TEST_VALUE", "100", 1);
  EXPECT_EQ(env_int_in("BRANT_TEST_VALUE", 7, range), 100);
  ::unsetenv("BRANT_TEST_VALUE");
}

TEST(Env, numbers_and_switches_are_read_strictly) {
  ::setenv("BRANT_TEST_VALUE", "12", 1);
  EXPECT_EQ(env_int("BRANT_TEST_VALUE"), 12);
  ::setenv("BRANT_TEST_VALUE", "12x", 1);
  EXPECT_FALSE(env_int("BRANT_TEST_VALUE").has_value());
  ::setenv("BRANT_TEST_VALUE", "off", 1);
  EXPECT_FALSE(env_bool("BRANT_TEST_VALUE", true));
  ::unsetenv("BRANT_TEST_VALUE");
  EXPECT_FALSE(env_int("BRANT_TEST_VALUE").has_value());
  EXPECT_TRUE(env_bool("BRANT_TEST_VALUE", true));
}

}  // namespace
}  // namespace brant
