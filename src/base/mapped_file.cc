#include "base/mapped_file.h"

#include <sys/mman.h>

#include <utility>

namespace brant {

Result<MappedFile> MappedFile::create(const char* name, std::size_t bytes) noexcept {
  Result<MemoryFile> file = MemoryFile::create(name, bytes);
  if (!file) return file.status();
  Result<MappedFile> mapped = map(*file);
  if (mapped) mapped->file_.emplace(std::move(*file));
  return mapped;
}

Result<MappedFile> MappedFile::open(const MemoryFileRecord& record) noexcept {
  const Result<MemoryFile> file = MemoryFile::open(record);
  return file ? map(*file) : Result<MappedFile>(file.status());
}

Result<MappedFile> MappedFile::map(const MemoryFile& file) noexcept {
  const Result<void*> base = file.map();
  if (!base) return base.status();
  return MappedFile({static_cast<std::byte*>(*base), file.bytes()});
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : file_(std::move(other.file_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Result<MemoryFileRecord> MappedFile::record() const noexcept {
  return file_ ? file_->record() : Result<MemoryFileRecord>(Status::not_supported);
}

}  // namespace brant
