#include "core/observe/statistics.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "brant/base/clock.h"
#include "core/observe/page_file.h"
#include "core/observe/statistics_folder.h"

namespace brant {
namespace {

static_assert(StatisticsPage::kFileBytes == kPageFileBytes);

std::atomic<unsigned> g_pages{0};  // a process may have several engines

template <std::size_t kBytes>
void put_text(char (&field)[kBytes], std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), kBytes - 1);
  std::copy_n(text.data(), length, field);
  field[length] = '\0';
}

StatisticsHeader header_of(const port::JobInfo& job, const ProcessMark& self) {
  StatisticsHeader header;
  header.page_bytes = sizeof(StatisticsPage);
  header.parent_pid = ::getppid();
  header.owner = self;
  header.started_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
  header.rank = job.rank;
  header.size = job.size;
  header.local_rank = job.local_rank;
  header.local_size = job.local_size;
  put_text(header.job_id, job.job_id);
  put_text(header.launcher, job.launcher);
  put_text(header.program, ::program_invocation_short_name);
  return header;
}

}  // namespace

Statistics::Statistics() = default;

Statistics::Statistics(const port::JobInfo& job) noexcept {
  try {
    std::string reasons;
    for (const std::string& folder : statistics_folders()) {
      const std::string reason = publish(job, folder);
      if (reason.empty()) {
        if (job.local_rank == 0) remove_leftovers(folder);
        return;
      }
      reasons += (reasons.empty() ? "" : "; ") + reason;
    }
    log::info("`brant info --jobs` will not show this process: {}. BRANT_STATISTICS=off does without", reasons);
  } catch (...) {
    log::info("`brant info --jobs` will not show this process: no memory");
  }
}

Statistics::Statistics(const port::JobInfo& job, const std::string& folder) noexcept {
  try {
    if (const std::string reason = publish(job, folder); !reason.empty())
      log::info("`brant info --jobs` will not show this process: {}", reason);
  } catch (...) {
    log::info("`brant info --jobs` will not show this process: no memory");
  }
}

Statistics::~Statistics() {
  if (page_ == nullptr) return;
  if (::getpid() == owner_pid_) ::unlink(file_.c_str());
  ::munmap(static_cast<void*>(page_), StatisticsPage::kFileBytes);
}

std::string Statistics::publish(const port::JobInfo& job, const std::string& folder) {
  std::string reason = make_statistics_folder(folder);
  if (!reason.empty()) return reason;
  const Result<ProcessMark> self = own_process_mark();
  if (!self) return "/proc is not mounted";
  const std::string name = statistics_file_name(*self, g_pages.fetch_add(1, std::memory_order_relaxed));
  DraftPage draft;
  reason = make_draft_page(folder, name, draft);
  if (!reason.empty()) return reason;
  auto* page = new (draft.memory) StatisticsPage;
  page->header = header_of(job, *self);
  // Only now it can be found: no reader sees half a header.
  reason = show_draft_page(draft);
  if (!reason.empty()) return reason;
  page_ = page;
  file_ = std::move(draft.file);
  owner_pid_ = self->pid;
  return {};
}

}  // namespace brant
