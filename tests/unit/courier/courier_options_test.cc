#include "ops/courier/courier_options.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace brant {
namespace {

/// Sets a variable for one test, and puts back what it was.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_.empty() ? ::unsetenv(name_) : ::setenv(name_, before_.c_str(), 1); }

 private:
  const char* name_;
  std::string before_;
};

TEST(CourierOptions, a_gpu_has_a_courier_and_an_emulated_device_has_one_on_demand) {
  const Variable unset("BRANT_COURIER", nullptr);
  EXPECT_EQ(CourierOptions::from_environment(MemoryKind::cuda).largest(), std::size_t{4} << 20);
  EXPECT_EQ(CourierOptions::from_environment(MemoryKind::emulated).largest(), 0u);
  const Variable on("BRANT_COURIER", "1");
  EXPECT_EQ(CourierOptions::from_environment(MemoryKind::emulated).largest(), std::size_t{4} << 20);
  const Variable off("BRANT_COURIER", "0");
  EXPECT_EQ(CourierOptions::from_environment(MemoryKind::cuda).largest(), 0u);
}

TEST(CourierOptions, numbers_out_of_range_are_ignored) {
  for (const char* value : {"0", "33", "many", "-1"}) {
    const Variable blocks("BRANT_COURIER_BLOCKS", value);
    EXPECT_EQ(CourierOptions::from_environment(MemoryKind::cuda).blocks, CourierOptions().blocks) << value;
  }
  const Variable blocks("BRANT_COURIER_BLOCKS", "7");
  const Variable lease("BRANT_COURIER_LEASE_US", "250");
  const CourierOptions options = CourierOptions::from_environment(MemoryKind::cuda);
  EXPECT_EQ(options.blocks, 7u);
  EXPECT_EQ(options.lease_us, 250);
}

}  // namespace
}  // namespace brant
