#include "core/job_key.h"

#include <chrono>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "brant/base/result.h"
#include "port/boot/single/single_boot.h"

namespace brant {
namespace {

using namespace std::chrono_literals;

TEST(JobKey, is_the_same_for_one_purpose_and_another_for_each_other) {
  const auto boot = port::open_single_boot();
  publish_job_key(*boot);
  ASSERT_EQ(boot->fence(1s), Status::ok);
  EXPECT_EQ(job_key_for(*boot, "pickles"), job_key_for(*boot, "pickles"));
  EXPECT_NE(job_key_for(*boot, "pickles"), job_key_for(*boot, "leases"));
  EXPECT_NE(job_key_for(*boot, "pickles"), Digest{});
}

TEST(JobKey, is_another_for_each_job) {
  const auto one = port::open_single_boot(), other = port::open_single_boot();
  for (const auto& boot : {one.get(), other.get()}) {
    publish_job_key(*boot);
    ASSERT_EQ(boot->fence(1s), Status::ok);
  }
  EXPECT_NE(job_key_for(*one, "pickles"), job_key_for(*other, "pickles"));
}

std::string refusal(port::Boot& boot, Status expected) {
  try {
    static_cast<void>(job_key_for(boot, "pickles"));
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), expected);
    return error.what();
  }
  return "";
}

TEST(JobKey, that_is_not_there_or_is_another_thing_is_an_error) {
  const auto none = port::open_single_boot();
  EXPECT_NE(refusal(*none, Status::not_found).find("did not get the key of the job"), std::string::npos);
  const auto short_one = port::open_single_boot();
  ASSERT_EQ(short_one->put("brant.job_key", std::as_bytes(std::span("short"))), Status::ok);
  ASSERT_EQ(short_one->fence(1s), Status::ok);
  EXPECT_NE(refusal(*short_one, Status::version_mismatch), "");
}

}  // namespace
}  // namespace brant
