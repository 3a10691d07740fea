#include "core/shared_memory_fault.h"

#include <gtest/gtest.h>

namespace brant {
namespace {

constexpr std::uint64_t kGigabyte = std::uint64_t{1} << 30;

TEST(SharedMemoryFault, is_named_with_figures_and_cure) {
  EXPECT_EQ(shared_memory_fault({kGigabyte, kGigabyte, true}), "");
  const std::string full = shared_memory_fault({65536, 4096, true});
  EXPECT_NE(full.find("/dev/shm, which has 4096 of 65536 bytes free"), std::string::npos) << full;
  EXPECT_NE(full.find("--shm-size"), std::string::npos) << full;
  const std::string foreign = shared_memory_fault({kGigabyte, kGigabyte, false});
  EXPECT_NE(foreign.find("/proc is that of another PID namespace"), std::string::npos) << foreign;
  EXPECT_EQ(foreign.find("/dev/shm"), std::string::npos) << foreign;
}

TEST(SharedMemoryFault, proc_of_this_process_is_its_own) { EXPECT_TRUE(look_at_shared_memory().own_proc); }

}  // namespace
}  // namespace brant
