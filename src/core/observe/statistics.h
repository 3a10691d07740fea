#pragma once

#include <memory>
#include <string>

#include "core/observe/statistics_page.h"
#include "port/boot.h"

namespace brant {

/// The counters of an engine, and the page by which other processes of this user read them while it runs: a file in one
/// of `statistics_folders()`, with this process as its only writer. The counters themselves lie in the page: publishing
/// costs the message path nothing. The file goes with the object; that of a killed process is removed by whoever looks
/// next.
class Statistics {
 public:
  /// Counts for nobody else.
  Statistics();
  /// Publishes; where that is impossible, the reason is one line in the log (level info) and counting goes on. The
  /// first process of a job on its host also removes leftovers. Microseconds.
  explicit Statistics(const port::JobInfo& job) noexcept;
  /// The same in one given folder. For tests.
  Statistics(const port::JobInfo& job, const std::string& folder) noexcept;
  ~Statistics();
  Statistics(const Statistics&) = delete;
  Statistics& operator=(const Statistics&) = delete;

  [[nodiscard]] Counters& counters() noexcept { return page_ == nullptr ? private_ : page_->counters; }
  /// Empty if nothing is published.
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

 private:
  /// Empty, or why it did not work.
  std::string publish(const port::JobInfo& job, const std::string& folder);

  Counters private_;
  StatisticsPage* page_ = nullptr;
  std::string file_;
  int owner_pid_ = 0;  ///< A forked child must not remove its parent's page.
};

}  // namespace brant
