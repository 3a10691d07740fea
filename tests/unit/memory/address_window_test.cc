#include "port/memory/emulated/address_window.h"

#include <array>
#include <iterator>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace brant::port::memory {
namespace {

constexpr std::size_t kPage = 4096;

TEST(AddressWindow, gives_ranges_with_a_guard_between_them) {
  AddressWindow window;
  const Result<std::size_t> first = window.take(kPage);
  const Result<std::size_t> second = window.take(kPage);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_GE(*second, *first + 2 * kPage);
  EXPECT_TRUE(window.contains(window.device_address(*first)));
  EXPECT_FALSE(window.contains(window.engine_address(*first)));
  EXPECT_FALSE(window.contains(window.device_address(0) - 1));
  EXPECT_FALSE(window.contains(nullptr));
  EXPECT_EQ(window.engine_address(5) - window.device_address(5), window.engine_distance());
}

TEST(AddressWindow, gives_a_freed_range_again_at_once) {
  AddressWindow window;
  const Result<std::size_t> first = window.take(10 * kPage);
  ASSERT_TRUE(first.ok());
  window.give_back(*first, 10 * kPage);
  EXPECT_EQ(*window.take(10 * kPage), *first);
}

TEST(AddressWindow, joins_freed_ranges_whatever_the_order) {
  for (const auto& order : {std::array{0, 1, 2}, std::array{2, 1, 0}, std::array{0, 2, 1}, std::array{1, 0, 2}}) {
    AddressWindow window;
    std::array<std::size_t, 3> offsets{};
    for (std::size_t& offset : offsets) offset = *window.take(kPage);
    ASSERT_TRUE(window.take(kPage).ok());  // something behind, so that the rest of the window does not help
    for (const int which : order) window.give_back(offsets[static_cast<std::size_t>(which)], kPage);
    // Three ranges of one page, each with its guard, make one of five pages and a guard.
    EXPECT_EQ(*window.take(5 * kPage), offsets[0]);
  }
}

TEST(AddressWindow, more_than_there_is_is_no_memory) {
  AddressWindow window;
  EXPECT_EQ(window.take(std::size_t{1} << 50).status(), Status::no_memory);
  EXPECT_TRUE(window.take(kPage).ok());
}

TEST(AddressWindow, ranges_in_use_never_overlap) {
  AddressWindow window;
  std::mt19937 random(7);
  std::map<std::size_t, std::size_t> used;
  for (int step = 0; step < 3000; ++step) {
    if (used.size() < 40 || random() % 2 == 0) {
      const std::size_t bytes = (1 + random() % 9) * kPage;
      const Result<std::size_t> offset = window.take(bytes);
      ASSERT_TRUE(offset.ok());
      const auto after = used.lower_bound(*offset);
      if (after != used.end()) {
        ASSERT_LT(*offset + bytes, after->first);
      }
      if (after != used.begin()) {
        ASSERT_GT(*offset, std::prev(after)->first + std::prev(after)->second);
      }
      used[*offset] = bytes;
    } else {
      auto victim = std::next(used.begin(), static_cast<long>(random() % used.size()));
      window.give_back(victim->first, victim->second);
      used.erase(victim);
    }
  }
}

}  // namespace
}  // namespace brant::port::memory
