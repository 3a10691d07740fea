// Which words of bells are waited for, and what a scan of them finds.
#include "ops/notify/armed_lines.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace brant::test {
namespace {

constexpr std::size_t kLines = 130;

struct Page {
  alignas(128) std::uint64_t words[kLines * ArmedLines::kWords] = {};
};

/// By each way of looking that this CPU has.
class ArmedLinesOfAPage : public testing::TestWithParam<line_scan::Way> {
 protected:
  std::vector<std::size_t> scan() {
    std::vector<std::size_t> found;
    lines_.scan([&](std::size_t word) { found.push_back(word); });
    return found;
  }

  const std::unique_ptr<Page> page_ = std::make_unique<Page>();
  ArmedLines lines_{page_->words, kLines, GetParam().look};
};

INSTANTIATE_TEST_SUITE_P(Ways, ArmedLinesOfAPage, testing::ValuesIn(line_scan::ways().begin(), line_scan::ways().end()),
                         [](const auto& each) {
                           std::string name = each.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

using Found = std::vector<std::size_t>;

TEST_P(ArmedLinesOfAPage, every_word_that_reached_its_epoch_is_found) {
  for (std::size_t word = 0; word < kLines * ArmedLines::kWords; ++word) lines_.arm(word, 5);
  EXPECT_EQ(scan(), Found{});
  for (std::size_t word = 0; word < kLines * ArmedLines::kWords; ++word) {
    page_->words[word] = 5;
    EXPECT_EQ(scan(), Found{word});
    page_->words[word] = 4;
  }
}

TEST_P(ArmedLinesOfAPage, a_later_epoch_is_reached_too_and_an_earlier_one_is_not) {
  lines_.arm(17, 5);
  page_->words[17] = 4;
  EXPECT_EQ(scan(), Found{});
  page_->words[17] = 900;
  EXPECT_EQ(scan(), Found{17});
}

TEST_P(ArmedLinesOfAPage, epochs_may_wrap_around) {
  page_->words[3] = ~std::uint64_t{0} - 1;
  lines_.arm(3, 2);
  EXPECT_EQ(scan(), Found{});
  page_->words[3] = 2;
  EXPECT_EQ(scan(), Found{3});
}

TEST_P(ArmedLinesOfAPage, words_that_are_not_armed_are_not_found) {
  page_->words[16] = 7;
  lines_.arm(17, 5);
  page_->words[18] = 7;
  EXPECT_EQ(scan(), Found{});
  lines_.disarm(17);
  page_->words[17] = 5;
  EXPECT_EQ(scan(), Found{});
  EXPECT_EQ(lines_.armed(), 0u);
}

TEST_P(ArmedLinesOfAPage, what_is_found_may_be_disarmed_and_armed_anew) {
  lines_.arm(40, 1);
  lines_.arm(41, 1);
  page_->words[40] = page_->words[41] = 1;
  Found found;
  lines_.scan([&](std::size_t word) {
    found.push_back(word);
    word == 40 ? lines_.disarm(41) : lines_.disarm(40);
    lines_.arm(word, 2);
  });
  EXPECT_EQ(found, Found{40});
  EXPECT_EQ(lines_.armed(), 1u);
  EXPECT_EQ(scan(), Found{});
}

TEST_P(ArmedLinesOfAPage, a_disarmed_line_among_armed_ones_is_not_looked_at) {
  for (std::size_t line = 0; line < kLines; line += 2) lines_.arm(line * ArmedLines::kWords + 3, 1);
  for (std::size_t word = 0; word < kLines * ArmedLines::kWords; ++word) page_->words[word] = 1;
  Found expected;
  for (std::size_t line = 0; line < kLines; line += 2) expected.push_back(line * ArmedLines::kWords + 3);
  EXPECT_EQ(scan(), expected);
  for (const std::size_t word : expected) lines_.disarm(word);
  EXPECT_EQ(scan(), Found{});
}

}  // namespace
}  // namespace brant::test
