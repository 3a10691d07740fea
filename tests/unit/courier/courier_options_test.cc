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

}  // namespace
}  // namespace brant
