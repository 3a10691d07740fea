#include "core/observe/page_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "base/unique_fd.h"

namespace brant {
namespace {

/// A file of this size whose memory is there.
UniqueFd create_draft(const std::string& draft, std::string& reason) {
  UniqueFd fd(::open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  int error = fd ? ::posix_fallocate(fd.get(), 0, kPageFileBytes) : errno;
  if (error == 0) return fd;
  reason = fmt::format("{}: {}", draft, std::strerror(error));
  if (fd) ::unlink(draft.c_str());
  return {};
}

}  // namespace

std::string make_draft_page(const std::string& folder, const std::string& name, DraftPage& page) {
  page.draft = folder + "/." + name;
  page.file = folder + "/" + name;
  std::string reason;
  const UniqueFd fd = create_draft(page.draft, reason);
  if (!fd) return reason;
  static_cast<void>(::flock(fd.get(), LOCK_EX | LOCK_NB));
  void* memory = ::mmap(nullptr, kPageFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    reason = fmt::format("{}: {}", page.draft, std::strerror(errno));
    ::unlink(page.draft.c_str());
    return reason;
  }
  page.memory = memory;
  return {};
}

std::string show_draft_page(const DraftPage& page) {
  if (::rename(page.draft.c_str(), page.file.c_str()) == 0) return {};
  std::string reason = fmt::format("{}: {}", page.file, std::strerror(errno));
  ::unlink(page.draft.c_str());
  ::munmap(page.memory, kPageFileBytes);
  return reason;
}

}  // namespace brant
