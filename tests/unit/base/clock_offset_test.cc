#include "base/clock_offset.h"

#include <gtest/gtest.h>

namespace brant {
namespace {

using namespace std::chrono_literals;

TEST(ClockOffset, comes_from_the_look_that_was_interrupted_least) {
  std::chrono::nanoseconds time = 1s;
  int looks = 0;
  const auto now = [&] { return time += 20ns; };
  const auto other = [&] {
    if (++looks != 7) time += 5ms;  // the process loses its core before the other clock is read
    const auto read = time + 10ns;
    time += 20ns;
    return read + 3h;
  };
  EXPECT_EQ(clock_offset(now, other), 3h - 10ns);
}

TEST(ClockOffset, may_be_negative) {
  std::chrono::nanoseconds time = 1h;
  EXPECT_EQ(clock_offset([&] { return time; }, [&] { return time - 2h; }), -2h);
}

}  // namespace
}  // namespace brant
