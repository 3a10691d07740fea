// Statistics pages that were cut or damaged: read, or a line in the report.
#include <vector>

#include <gtest/gtest.h>

#include "cli/jobs/page_reader.h"
#include "support/mutation.h"
#include "support/statistics_page_bytes.h"

namespace brant::cli::jobs {
namespace {

TEST(PageFuzz, a_damaged_page_is_read_or_has_a_problem_in_words) {
  test::Mutation mutation(20261127);
  const std::vector<std::byte> whole = test::statistics_page_bytes();
  const unsigned pages = test::fuzz_records(400'000);
  unsigned refused = 0;
  for (unsigned i = 0; i < pages; ++i) {
    std::vector<std::byte> bytes = whole;
    mutation.spoil(std::span(bytes).first(mutation.below(2) == 0 ? 64 : sizeof(StatisticsPage)));
    if (mutation.below(4) == 0) bytes.resize(mutation.below(sizeof(StatisticsPage) + 64));
    bytes.shrink_to_fit();
    const ProcessPage page = parse_page(bytes);
    refused += page.problem.empty() ? 0 : 1;
    if (page.problem.empty()) {
      ASSERT_TRUE(page.rank >= 0 && page.rank < page.size && page.owner.pid > 0);
    }
  }
  EXPECT_GT(refused, pages / 8);
  EXPECT_LT(refused, pages);
}

}  // namespace
}  // namespace brant::cli::jobs
