#include "core/failure_detector.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include <gtest/gtest.h>

namespace brant {
namespace {

TEST(FailureDetector, watches_processes_also_without_descriptors_left) {
  FailureDetector detector;
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool watched = detector.watch(3, child);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(watched);
  EXPECT_TRUE(detector.watching());
  EXPECT_TRUE(detector.poll().empty());
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(detector.poll(), std::vector<int>{3});
  EXPECT_TRUE(detector.poll().empty()) << "a death is told once";
  EXPECT_FALSE(detector.watch(4, child));
}

}  // namespace
}  // namespace brant
