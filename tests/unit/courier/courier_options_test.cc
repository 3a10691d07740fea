#include "ops/courier/courier_options.h"

#include <gtest/gtest.h>

#include "support/environment.h"

namespace brant {
namespace {

using test::ScopedVariable;

TEST(CourierOptions, a_gpu_has_a_courier_and_an_emulated_device_has_one_on_demand) {
  const ScopedVariable unset("BRANT_COURIER", nullptr);
  EXPECT_EQ(CourierOptions::from_environment(MemoryKind::cuda).largest(), std::size_t{4} << 20);
  EXPECT_EQ(CourierOptions::from_environment(MemoryKind::emulated).largest(), 0u);
  const ScopedVariable on("BRANT_COURIER", "1");
  EXPECT_EQ(CourierOptions::from_environment(MemoryKind::emulated).largest(), std::size_t{4} << 20);
  const ScopedVariable off("BRANT_COURIER", "0");
  EXPECT_EQ(CourierOptions::from_environment(MemoryKind::cuda).largest(), 0u);
}

TEST(CourierOptions, numbers_out_of_range_are_ignored) {
  for (const char* value : {"0", "33", "many", "-1"}) {
    const ScopedVariable blocks("BRANT_COURIER_BLOCKS", value);
    EXPECT_EQ(CourierOptions::from_environment(MemoryKind::cuda).blocks, CourierOptions().blocks) << value;
  }
  const ScopedVariable blocks("BRANT_COURIER_BLOCKS", "7");
  const ScopedVariable lease("BRANT_COURIER_LEASE_US", "250");
  const CourierOptions options = CourierOptions::from_environment(MemoryKind::cuda);
  EXPECT_EQ(options.blocks, 7u);
  EXPECT_EQ(options.lease_us, 250);
}

TEST(CourierOptions, fences_are_left_out_only_where_that_was_measured) {
  const auto by_model = [](int architecture) {
    return CourierOptions::from_environment(MemoryKind::cuda).fences_by_model(architecture);
  };
  const ScopedVariable unset("BRANT_COURIER_FENCES", nullptr);
  EXPECT_FALSE(by_model(90));
  for (const int architecture : {0, 80, 89, 100, 103, 120}) EXPECT_TRUE(by_model(architecture)) << architecture;
  const ScopedVariable wrong("BRANT_COURIER_FENCES", "some");
  EXPECT_FALSE(by_model(90));
  const ScopedVariable all("BRANT_COURIER_FENCES", "model");
  EXPECT_TRUE(by_model(90));
  const ScopedVariable few("BRANT_COURIER_FENCES", "measured");
  EXPECT_FALSE(by_model(80));
}

}  // namespace
}  // namespace brant
