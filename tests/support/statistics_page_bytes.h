#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <vector>

#include "core/observe/statistics_page.h"

namespace brant::test {

/// The bytes of a statistics page as rank 1 of 2 wrote it, changed by `change`.
inline std::vector<std::byte> statistics_page_bytes(const std::function<void(StatisticsPage&)>& change = {}) {
  StatisticsPage page;
  page.header.page_bytes = sizeof(StatisticsPage);
  page.header.owner = {.start_time = 5, .pid_namespace = 6, .pid = 7};
  page.header.rank = 1;
  page.header.size = 2;
  std::strcpy(page.header.job_id, "a job");
  page.counters.failures.add(5);
  if (change) change(page);
  std::vector<std::byte> bytes(StatisticsPage::kFileBytes);
  std::memcpy(bytes.data(), static_cast<const void*>(&page), sizeof(page));
  return bytes;
}

}  // namespace brant::test
