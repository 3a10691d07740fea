#include "core/observe/published_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "base/log.h"
#include "base/unique_fd.h"
#include "core/observe/page_file.h"
#include "core/observe/statistics_folder.h"

namespace brant {
namespace {

std::atomic<unsigned> g_files{0};  // a process may have several engines

}  // namespace

PublishedPages::~PublishedPages() {
  if (pages_.empty()) return;
  if (::getpid() == owner_pid_) ::unlink(file_.c_str());
  for (std::byte* page : pages_) ::munmap(page, kPageFileBytes);
}

/// The first page. Empty, or why there is none.
std::string PublishedPages::publish() {
  const Result<ProcessMark> self = own_process_mark();
  if (!self) return "/proc is not mounted";
  const std::string name = published_pages_name(*self, g_files.fetch_add(1, std::memory_order_relaxed));
  std::string reasons;
  for (const std::string& folder : statistics_folders()) {
    DraftPage draft;
    std::string reason = make_statistics_folder(folder);
    if (reason.empty()) reason = make_draft_page(folder, name, draft);
    if (reason.empty()) reason = show_draft_page(draft);
    if (!reason.empty()) {
      reasons += (reasons.empty() ? "" : "; ") + reason;
      continue;
    }
    file_ = draft.file;
    owner_pid_ = self->pid;
    pages_.reserve(kPagesMax);
    dropped_.reserve(kPagesMax);
    pages_.push_back(static_cast<std::byte*>(draft.memory));
    return {};
  }
  return reasons;
}

/// The next place in the file, whose memory is there then.
std::byte* PublishedPages::map_next() const noexcept {
  const auto offset = static_cast<off_t>(pages_.size() * kPageFileBytes);
  const UniqueFd fd(::open(file_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd || ::posix_fallocate(fd.get(), offset, kPageFileBytes) != 0) return nullptr;
  void* memory = ::mmap(nullptr, kPageFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), offset);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

std::byte* PublishedPages::add() noexcept {
  if (!wanted_ || (owner_pid_ != 0 && ::getpid() != owner_pid_)) return nullptr;
  if (!dropped_.empty()) {
    std::byte* page = dropped_.back();
    dropped_.pop_back();
    return page;
  }
  if (pages_.empty()) {
    try {
      const std::string reason = publish();
      if (reason.empty()) return pages_.front();
      log::info("`brant info --job` will not show the calls of teams: {}", reason);
    } catch (...) {
      log::info("`brant info --job` will not show the calls of teams: no memory");
    }
    wanted_ = false;
    return nullptr;
  }
  if (pages_.size() == kPagesMax) return nullptr;
  std::byte* page = map_next();
  if (page != nullptr) pages_.push_back(page);  // there is room for all
  return page;
}

void PublishedPages::drop(std::byte* page) noexcept {
  if (page == nullptr) return;
  std::memset(page, 0, kPageFileBytes);
  dropped_.push_back(page);
}

}  // namespace brant
