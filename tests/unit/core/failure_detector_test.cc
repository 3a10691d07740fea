#include "core/failure_detector.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iterator>
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

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

TEST(FailureDetector, watches_once_however_often_it_is_told) {
  FailureDetector detector;
  ASSERT_TRUE(detector.watch(3, ::getpid()));
  const auto before = open_descriptors();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(detector.watch(3, ::getpid()));
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace brant
