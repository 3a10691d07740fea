#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/unique_fd.h"

namespace brant::mpi {

/// An open file of the system. It has no position: every access says where. What fails throws a CallError that names
/// the file and the bytes in question.
class DiskFile {
 public:
  DiskFile() noexcept = default;
  /// `flags` and `mode`: those of open(2). Refuses what has no offsets: directories, pipes and sockets.
  DiskFile(std::string name, int flags, unsigned mode);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(fd_); }

  /// How many bytes there were before the end of the file, if not all.
  std::size_t read(std::int64_t offset, std::span<std::byte> to) const;
  void write(std::int64_t offset, std::span<const std::byte> from) const;
  [[nodiscard]] std::int64_t size() const;
  void resize(std::int64_t bytes) const;
  /// There is room on the disk for so many bytes, and the file is at least as long.
  void preallocate(std::int64_t bytes) const;
  /// Waits until what was written is on the disk.
  void sync() const;
  void close();

  enum class Lock : std::uint8_t { shared, exclusive };
  /// Waits until no other opener of the file, of whatever process or host, has a lock on these bytes that excludes it.
  /// The lock belongs to this object, not to the process.
  void lock(Lock sort, std::int64_t offset, std::int64_t bytes) const;
  void unlock(std::int64_t offset, std::int64_t bytes) const noexcept;

 private:
  std::string name_;
  UniqueFd fd_;
};

/// Locks bytes of a file for as long as it lives.
class RangeLock {
 public:
  RangeLock(const DiskFile& file, DiskFile::Lock sort, std::int64_t offset, std::int64_t bytes)
      : file_(file), offset_(offset), bytes_(bytes) {
    file_.lock(sort, offset_, bytes_);
  }
  ~RangeLock() { file_.unlock(offset_, bytes_); }
  RangeLock(const RangeLock&) = delete;
  RangeLock& operator=(const RangeLock&) = delete;

 private:
  const DiskFile& file_;
  const std::int64_t offset_;
  const std::int64_t bytes_;
};

/// Removes a file by its name. Throws as the above do.
void delete_disk_file(const std::string& name);

}  // namespace brant::mpi
