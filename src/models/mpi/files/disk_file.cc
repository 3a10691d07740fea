#include "models/mpi/files/disk_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "models/mpi/files/file_errors.h"

namespace brant::mpi {

namespace {

/// The system moves no more than 2 GiB less a page in one call.
constexpr std::size_t kCallBytesMost = std::size_t{1} << 30;

struct flock range_of(short type, std::int64_t offset, std::int64_t bytes) noexcept {
  struct flock range{};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = offset;
  range.l_len = bytes;
  return range;
}

}  // namespace

/// Opening a pipe would wait for its other end, so nothing is opened that may block.
DiskFile::DiskFile(std::string name, int flags, unsigned mode) : name_(std::move(name)) {
  fd_ = UniqueFd(::open(name_.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, mode));
  if (!fd_) fail_with_errno(errno, "the file '{}' cannot be opened", name_);
  struct stat what{};
  if (::fstat(fd_.get(), &what) != 0) fail_with_errno(errno, "the file '{}' cannot be looked at", name_);
  require(!S_ISDIR(what.st_mode), MPI_ERR_BAD_FILE, "'{}' is a directory, not a file", name_);
  require(!S_ISFIFO(what.st_mode) && !S_ISSOCK(what.st_mode), MPI_ERR_UNSUPPORTED_OPERATION,
          "'{}' is a pipe or a socket, which has no offsets: brant opens files that can be read and written anywhere",
          name_);
}

std::size_t DiskFile::read(std::int64_t offset, std::span<std::byte> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    const std::size_t some = std::min(to.size() - done, kCallBytesMost);
    const ssize_t got = ::pread(fd_.get(), to.data() + done, some, offset + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      fail_with_errno(errno, "{} bytes at offset {} of the file '{}' cannot be read", to.size() - done,
                      offset + static_cast<std::int64_t>(done), name_);
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void DiskFile::write(std::int64_t offset, std::span<const std::byte> from) const {
  std::size_t done = 0;
  while (done < from.size()) {
    const std::size_t some = std::min(from.size() - done, kCallBytesMost);
    const ssize_t put = ::pwrite(fd_.get(), from.data() + done, some, offset + static_cast<std::int64_t>(done));
    if (put < 0 && errno == EINTR) continue;
    const int number = put == 0 ? EIO : errno;
    if (put <= 0) {
      fail_with_errno(number, "{} bytes at offset {} of the file '{}' cannot be written", from.size() - done,
                      offset + static_cast<std::int64_t>(done), name_);
    }
    done += static_cast<std::size_t>(put);
  }
}

std::int64_t DiskFile::size() const {
  struct stat what{};
  if (::fstat(fd_.get(), &what) != 0) fail_with_errno(errno, "the size of the file '{}' cannot be found out", name_);
  return what.st_size;
}

void DiskFile::resize(std::int64_t bytes) const {
  while (::ftruncate(fd_.get(), bytes) != 0) {
    if (errno != EINTR) fail_with_errno(errno, "the file '{}' cannot be made {} bytes long", name_, bytes);
  }
}

/// A file system that cannot set room aside gets a file of that length.
void DiskFile::preallocate(std::int64_t bytes) const {
  if (bytes == 0) return;
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(fd_.get(), 0, bytes);
  const bool unknown = error == EOPNOTSUPP || error == EBADF || error == EINVAL;
  if (error != 0 && !unknown) fail_with_errno(error, "{} bytes cannot be set aside for the file '{}'", bytes, name_);
  if (unknown && size() < bytes) resize(bytes);
}

/// What has no disk behind it has nothing to wait for.
void DiskFile::sync() const {
  while (::fsync(fd_.get()) != 0) {
    if (errno == EINVAL || errno == EROFS || errno == ENOTSUP) return;
    if (errno != EINTR) fail_with_errno(errno, "what was written to the file '{}' is not on its disk", name_);
  }
}

/// The descriptor is gone whatever close(2) says.
void DiskFile::close() {
  if (!fd_ || ::close(fd_.release()) == 0 || errno == EINTR) return;
  fail_with_errno(errno, "the file '{}' was closed with an error", name_);
}

void DiskFile::lock(Lock sort, std::int64_t offset, std::int64_t bytes) const {
  struct flock range = range_of(sort == Lock::exclusive ? F_WRLCK : F_RDLCK, offset, bytes);
  while (::fcntl(fd_.get(), F_OFD_SETLKW, &range) != 0) {
    if (errno != EINTR) {
      fail_with_errno(errno, "{} bytes at offset {} of the file '{}' cannot be locked: its file system must know locks",
                      bytes, offset, name_);
    }
  }
}

void DiskFile::unlock(std::int64_t offset, std::int64_t bytes) const noexcept {
  struct flock range = range_of(F_UNLCK, offset, bytes);
  static_cast<void>(::fcntl(fd_.get(), F_OFD_SETLK, &range));
}

void delete_disk_file(const std::string& name) {
  if (::unlink(name.c_str()) != 0) fail_with_errno(errno, "the file '{}' cannot be deleted", name);
}

}  // namespace brant::mpi
