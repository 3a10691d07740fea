#include "base/process_copy.h"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace brant {
namespace {

/// What a child of this process, and one of that, say.
bool in_children(const ProcessCopy& copy, unsigned generations) {
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(generations == 1 ? (copy.is_original() ? 1 : 0) : (in_children(copy, generations - 1) ? 1 : 0));
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WEXITSTATUS(status) == 1;
}

TEST(ProcessCopy, is_the_original_where_it_was_made_and_in_no_child) {
  const ProcessCopy copy;
  EXPECT_FALSE(in_children(copy, 1));
  EXPECT_FALSE(in_children(copy, 2));
  EXPECT_TRUE(copy.is_original());
}

TEST(ProcessCopy, made_in_a_child_is_an_original_there) {
  const ProcessCopy copy;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(ProcessCopy().is_original() && !copy.is_original() ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace brant
