#include "models/mpi/files/shared_pointer.h"

#include <fcntl.h>
#include <unistd.h>

#include <span>

#include "models/mpi/call_error.h"

namespace brant::mpi {

namespace {

constexpr std::int64_t kWordBytes = sizeof(MPI_Offset);
constexpr unsigned kOwnerOnly = 0600;

}  // namespace

DiskFile& SharedPointer::word() {
  if (word_.is_open()) return word_;
  try {
    word_ = DiskFile(path(), O_RDWR | O_CREAT, kOwnerOnly);
  } catch (const CallError& error) {
    fail(error.error_class(),
         "there is no place for the shared file pointer ({}): let the members of the file write to that folder, or use "
         "explicit offsets",
         error.what());
  }
  return word_;
}

MPI_Offset SharedPointer::load() {
  MPI_Offset found = 0;
  const std::size_t bytes = word().read(0, std::as_writable_bytes(std::span(&found, 1)));
  return bytes == sizeof found ? found : start_;
}

void SharedPointer::store(MPI_Offset etype) { word().write(0, std::as_bytes(std::span(&etype, 1))); }

MPI_Offset SharedPointer::advance(MPI_Offset etypes) {
  const RangeLock lock(word(), DiskFile::Lock::exclusive, 0, kWordBytes);
  const MPI_Offset before = load();
  MPI_Offset after = 0;
  require(!__builtin_add_overflow(before, etypes, &after), MPI_ERR_ARG,
          "the shared file pointer {} cannot go {} etypes further", before, etypes);
  store(after);
  return before;
}

MPI_Offset SharedPointer::value() {
  const RangeLock lock(word(), DiskFile::Lock::shared, 0, kWordBytes);
  return load();
}

void SharedPointer::set(MPI_Offset etype) {
  const RangeLock lock(word(), DiskFile::Lock::exclusive, 0, kWordBytes);
  store(etype);
}

void SharedPointer::start_over() noexcept {
  word_ = DiskFile();
  ++uses_;
  start_ = 0;
}

void SharedPointer::remove() const noexcept {
  if (!base_.empty()) static_cast<void>(::unlink(path().c_str()));
}

std::string SharedPointer::path() const { return fmt::format("{}-{}", base_, uses_); }

}  // namespace brant::mpi
