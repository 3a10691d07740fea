#include "core/uncaught.h"

#include <unistd.h>

#include <exception>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace brant {
namespace {

/// On a thread of its own: the test frame would catch the exception on this one.
template <typename Thrown>
void leave_uncaught(const Thrown& thrown) {
  print_uncaught_errors();
  print_uncaught_errors();
  std::thread([&] { throw thrown; }).join();
}

class Uncaught : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(Uncaught, an_error_of_brant_prints_its_text_and_ends_with_status_1) {
  EXPECT_EXIT(leave_uncaught(Error(Status::not_found, "nothing there. Cure: put it there")), testing::ExitedWithCode(1),
              "error: nothing there. Cure: put it there");
}

TEST_F(Uncaught, everything_else_goes_to_the_handler_that_was_there) {
  const auto with_handler = [] {
    std::set_terminate([] { ::_exit(7); });
    leave_uncaught(std::runtime_error("not ours"));
  };
  EXPECT_EXIT(with_handler(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace brant
