#include "base/process_mark.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/process_stat.h"

namespace brant {
namespace {

/// A child that does nothing until it is killed.
pid_t start_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    while (true) ::pause();
  }
  return child;
}

ProcessMark mark_of(pid_t pid) {
  ProcessMark mark = *own_process_mark();
  mark.pid = pid;
  mark.start_time = read_process_stat(pid)->start_time;
  return mark;
}

TEST(ProcessMark, this_process_lives) {
  const Result<ProcessMark> mark = own_process_mark();
  ASSERT_TRUE(mark.ok());
  EXPECT_EQ(mark->pid, ::getpid());
  EXPECT_GT(mark->start_time, 0u);
  EXPECT_EQ(check_process(*mark), Status::ok);
  EXPECT_EQ(*mark, *own_process_mark());
}

TEST(ProcessMark, another_process_with_the_same_pid_is_not_it) {
  ProcessMark mark = *own_process_mark();
  ++mark.start_time;
  EXPECT_EQ(check_process(mark), Status::peer_lost);
}

TEST(ProcessMark, a_dead_process_is_lost_and_so_is_a_zombie) {
  const pid_t child = start_child();
  ASSERT_GT(child, 0);
  const ProcessMark mark = mark_of(child);
  ::kill(child, SIGKILL);
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);  // dead, not yet reaped
  EXPECT_EQ(check_process(mark), Status::peer_lost);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(check_process(mark), Status::peer_lost);
}

TEST(ProcessMark, a_process_of_another_pid_namespace_is_out_of_reach) {
  ProcessMark mark = *own_process_mark();
  ++mark.pid_namespace;
  EXPECT_EQ(check_process(mark), Status::not_supported);
}

TEST(ProcessMark, refuses_pids_that_are_none) {
  ProcessMark mark = *own_process_mark();
  mark.pid = -1;
  EXPECT_EQ(check_process(mark), Status::invalid_argument);
  mark.pid = 0;
  EXPECT_EQ(check_process(mark), Status::invalid_argument);
}

}  // namespace
}  // namespace brant
