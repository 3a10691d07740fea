#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/unique_fd.h"
#include "brant/base/result.h"
#include "port/memory/process_mark.h"

namespace brant::port::memory {

/// What a process of this host needs to open another process's memory file. Trivially copyable; travels in an
/// ExportRecord.
struct MemoryFileRecord {
  std::uint64_t magic = 0;
  ProcessMark owner;
  std::uint64_t filesystem = 0;  ///< st_dev and st_ino: notice that the file was closed and its number used again.
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;  ///< Of the file: whole pages.
  std::int32_t fd = -1;     ///< In the owner.
  std::int32_t reserved = 0;
};

/// An anonymous file whose pages are the memory of one emulated allocation. Its size is sealed: a mapping of it cannot
/// be cut short by anybody (no SIGBUS). Set-up only; every call costs a few system calls.
class MemoryFile {
 public:
  /// `bytes` is a multiple of the page size. no_memory, or limit_reached when the process may open no more files.
  static Result<MemoryFile> create(std::size_t bytes) noexcept;

  /// Opens what `record` describes. peer_lost: the owner is gone. not_found: the owner freed the memory. not_supported:
  /// it cannot be reached (other pid namespace, other user). invalid_argument: no such record.
  static Result<MemoryFile> open(const MemoryFileRecord& record) noexcept;

  [[nodiscard]] Result<MemoryFileRecord> record() const noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  MemoryFile(UniqueFd fd, std::size_t bytes) noexcept : fd_(std::move(fd)), bytes_(bytes) {}

  UniqueFd fd_;
  std::size_t bytes_ = 0;
};

}  // namespace brant::port::memory
