#include "base/process_stat.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace brant {
namespace {

TEST(ProcessStat, a_process_is_described_whatever_its_name_holds) {
  char before[16] = {};
  ASSERT_EQ(::prctl(PR_GET_NAME, before), 0);
  ASSERT_EQ(::prctl(PR_SET_NAME, "a) Z 1 (b"), 0);
  const Result<ProcessStat> stat = read_process_stat(::getpid());
  ::prctl(PR_SET_NAME, before);
  ASSERT_TRUE(stat.ok());
  EXPECT_EQ(stat->name, "a) Z 1 (b");
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_GT(stat->start_time, 0u);
  EXPECT_FALSE(stat->dead() || stat->exiting());
}

TEST(ProcessStat, a_zombie_is_dead_and_then_there_is_nobody) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_GT(child, 0);
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const Result<ProcessStat> zombie = read_process_stat(child);
  ASSERT_TRUE(zombie.ok());
  EXPECT_TRUE(zombie->dead() && zombie->exiting());
  EXPECT_EQ(zombie->parent, ::getpid());
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(read_process_stat(child).status(), Status::peer_lost);
}

}  // namespace
}  // namespace brant
