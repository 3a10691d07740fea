#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/process_mark.h"
#include "base/unique_fd.h"
#include "brant/base/result.h"

namespace brant {

/// `bytes` rounded up to whole pages of this machine; 0 if that does not fit.
std::size_t whole_pages(std::size_t bytes) noexcept;

/// What a process of this host needs to open another process's memory file. Trivially copyable: travels as bytes.
struct MemoryFileRecord {
  std::uint64_t magic = 0;
  ProcessMark owner;
  std::uint64_t filesystem = 0;  ///< st_dev and st_ino: notice that the file was closed and its number used again.
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;  ///< Of the file: whole pages.
  std::int32_t fd = -1;     ///< In the owner.
  std::int32_t reserved = 0;
};

/// An anonymous file whose pages other processes of this host can map: they open it through /proc. Its size is sealed:
/// a mapping of it cannot be cut short by anybody (no SIGBUS). Set-up only; every call costs a few system calls.
class MemoryFile {
 public:
  /// At least `wanted` bytes, rounded up to whole pages; they read as zeroes. `name` is for people (/proc/PID/maps).
  /// invalid_argument for 0 bytes; no_memory, also for more than there are addresses; limit_reached when the process
  /// may open no more files.
  static Result<MemoryFile> create(const char* name, std::size_t wanted) noexcept;

  /// Opens what `record` describes. peer_lost: the owner is gone. not_found: the owner freed the memory. not_supported:
  /// it cannot be reached (other pid namespace, other user). invalid_argument: no such record.
  static Result<MemoryFile> open(const MemoryFileRecord& record) noexcept;

  /// The same file by a descriptor of this process, which stays the caller's; its owner need not live any more.
  /// invalid_argument: it is not what `record` describes.
  static Result<MemoryFile> copy(const MemoryFileRecord& record, int fd) noexcept;

  [[nodiscard]] Result<MemoryFileRecord> record() const noexcept;
  /// Maps all of it, to read and to write. The caller unmaps `bytes()`; the mapping outlives this object. no_memory.
  [[nodiscard]] Result<void*> map() const noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  MemoryFile(UniqueFd fd, std::size_t bytes) noexcept : fd_(std::move(fd)), bytes_(bytes) {}

  UniqueFd fd_;
  std::size_t bytes_ = 0;
};

}  // namespace brant
