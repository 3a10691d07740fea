#include "base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

#include "base/log.h"

namespace brant {
namespace {

constexpr std::uint64_t kMagic = 0x6272616e74656d31;  // "brantem1"
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// Each allocation keeps a file open, and the usual soft limit is 1024. Programs may raise it to the hard limit by
/// themselves.
bool raise_open_file_limit() noexcept {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

UniqueFd create_sealable(const char* name) noexcept {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd fd(::memfd_create(name, flags));
  if (!fd && errno == EMFILE && raise_open_file_limit()) fd.reset(::memfd_create(name, flags));
  return fd;
}

Status open_error(const MemoryFileRecord& record, int error) noexcept {
  if (error == ENOENT) {
    const Status owner = check_process(record.owner);
    return owner == Status::ok ? Status::not_found : owner;
  }
  log::warn(
      "memory that process {} shares ({} bytes, its file {}) cannot be opened: {}. Both processes must run as the same "
      "user, and the owner must allow it (PR_SET_DUMPABLE)",
      record.owner.pid, record.bytes, record.fd, std::strerror(error));
  return error == EACCES || error == EPERM ? Status::not_supported : Status::io_error;
}

bool is_of(const MemoryFileRecord& record, int fd) noexcept {
  struct stat info = {};
  return ::fstat(fd, &info) == 0 && static_cast<std::uint64_t>(info.st_dev) == record.filesystem &&
         static_cast<std::uint64_t>(info.st_ino) == record.inode &&
         static_cast<std::uint64_t>(info.st_size) == record.bytes;
}

bool is_sealed(int fd) noexcept {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

}  // namespace

std::size_t whole_pages(std::size_t bytes) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (bytes > std::numeric_limits<std::size_t>::max() - page) return 0;
  return (bytes + page - 1) / page * page;
}

Result<MemoryFile> MemoryFile::create(const char* name, std::size_t wanted) noexcept {
  if (wanted == 0) return Status::invalid_argument;
  const std::size_t bytes = whole_pages(wanted);
  if (bytes == 0 || bytes > static_cast<std::size_t>(std::numeric_limits<off_t>::max())) return Status::no_memory;
  UniqueFd fd = create_sealable(name);
  if (!fd) {
    const int error = errno;
    log::error("{}: memfd_create of {} bytes failed: {}{}", name, bytes, std::strerror(error),
               error == EMFILE ? " (one open file each: raise ulimit -n, or allocate fewer and larger pieces)" : "");
    return error == EMFILE || error == ENFILE ? Status::limit_reached : Status::no_memory;
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return Status::no_memory;
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return Status::io_error;
  return MemoryFile(std::move(fd), bytes);
}

Result<MemoryFileRecord> MemoryFile::record() const noexcept {
  const Result<ProcessMark> owner = own_process_mark();
  if (!owner) return owner.status();
  struct stat info = {};
  if (::fstat(fd_.get(), &info) != 0) return Status::io_error;
  return MemoryFileRecord{.magic = kMagic,
                          .owner = *owner,
                          .filesystem = static_cast<std::uint64_t>(info.st_dev),
                          .inode = static_cast<std::uint64_t>(info.st_ino),
                          .bytes = bytes_,
                          .fd = fd_.get()};
}

Result<void*> MemoryFile::map() const noexcept {
  void* base = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (base == MAP_FAILED) return Status::no_memory;
  return base;
}

Result<MemoryFile> MemoryFile::open(const MemoryFileRecord& record) noexcept {
  if (record.magic != kMagic || record.fd < 0 || record.bytes == 0) return Status::invalid_argument;
  if (const Status owner = check_process(record.owner); owner != Status::ok) return owner;
  std::array<char, 48> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/fd/%d", record.owner.pid, record.fd);
  // Without O_NONBLOCK a file number that now names a pipe or a terminal could make the open wait.
  UniqueFd fd(::open(path.data(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return open_error(record, errno);
  if (!is_of(record, fd.get())) return Status::not_found;  // freed, and the number names another file by now
  if (!is_sealed(fd.get())) return Status::invalid_argument;
  return MemoryFile(std::move(fd), static_cast<std::size_t>(record.bytes));
}

Result<MemoryFile> MemoryFile::copy(const MemoryFileRecord& record, int fd) noexcept {
  if (record.magic != kMagic || record.bytes == 0 || !is_of(record, fd) || !is_sealed(fd))
    return Status::invalid_argument;
  UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return Status::limit_reached;
  return MemoryFile(std::move(own), static_cast<std::size_t>(record.bytes));
}

}  // namespace brant
