// Statistics pages that were cut or damaged: read, or a line in the report.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "cli/jobs/page_reader.h"
#include "core/statistics_page.h"
#include "support/mutation.h"

namespace brant::cli::jobs {
namespace {

std::vector<std::byte> whole_page() {
  StatisticsPage page;
  page.header.page_bytes = sizeof(StatisticsPage);
  page.header.owner = {.start_time = 5, .pid_namespace = 6, .pid = 7};
  page.header.rank = 1;
  page.header.size = 2;
  std::strcpy(page.header.job_id, "a job");
  page.counters.failures.add(5);
  std::vector<std::byte> bytes(StatisticsPage::kFileBytes);
  std::memcpy(bytes.data(), static_cast<const void*>(&page), sizeof(page));
  return bytes;
}

TEST(PageFuzz, a_damaged_page_is_read_or_has_a_problem_in_words) {
  test::Mutation mutation(20261127);
  const std::vector<std::byte> whole = whole_page();
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
