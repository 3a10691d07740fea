#include "port/memory/host_shares.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>
#include <new>
#include <utility>

namespace brant::port::memory {
HostShares::~HostShares() {
  for (const auto& [base, file] : files_) ::munmap(base, file.bytes());
  for (const auto& [address, range] : imports_) ::munmap(range.base, range.bytes);
}

Result<void*> HostShares::allocate(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (files_.size() >= kSharesMax) return Status::limit_reached;
  Result<MemoryFile> file = MemoryFile::create("brant-host", bytes);
  if (!file) return file.status();
  const Result<void*> base = file->map();
  if (!base) return base;
  const std::size_t mapped = file->bytes();
  try {
    files_.emplace(*base, std::move(*file));
  } catch (const std::bad_alloc&) {
    ::munmap(*base, mapped);
    return Status::no_memory;
  }
  return base;
}

Status HostShares::free(void* base) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(base);
  if (found == files_.end()) return Status::not_found;
  const MemoryFile& file = found->second;
  // The pages go now, and not when the last process has closed its mapping: from here on they read as zeroes there.
  static_cast<void>(
      ::fallocate(file.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(file.bytes())));
  ::munmap(base, file.bytes());
  files_.erase(found);
  return Status::ok;
}

Result<ExportRecord> HostShares::export_allocation(const PointerInfo& allocation, const void* pointer) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(allocation.base);
  if (found == files_.end()) return Status::wrong_kind;
  const Result<MemoryFileRecord> file = found->second.record();
  if (!file) return file.status();
  ExportRecord record;
  record.kind = allocation.kind;
  record.buffer_id = allocation.buffer_id;
  record.bytes = allocation.bytes;
  record.offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - static_cast<std::byte*>(allocation.base));
  static_assert(sizeof(MemoryFileRecord) <= sizeof(record.handle));
  std::memcpy(record.handle, &*file, sizeof(MemoryFileRecord));
  return record;
}

Result<void*> HostShares::import_allocation(const ExportRecord& record) noexcept {
  MemoryFileRecord file_record;
  std::memcpy(&file_record, record.handle, sizeof(file_record));
  if (!made(record) || record.offset >= record.bytes || record.bytes > file_record.bytes)
    return Status::invalid_argument;
  const Result<MemoryFile> file = MemoryFile::open(file_record);
  if (!file) return file.status();
  const Result<void*> base = file->map();
  if (!base) return base;
  void* address = static_cast<std::byte*>(*base) + record.offset;
  try {
    const std::lock_guard lock(mutex_);
    imports_.emplace(address, Range{*base, file->bytes()});
  } catch (const std::bad_alloc&) {
    ::munmap(*base, file->bytes());
    return Status::no_memory;
  }
  return address;
}

Status HostShares::close_import(void* imported) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = imports_.find(imported);
  if (found == imports_.end()) return Status::not_found;
  ::munmap(found->second.base, found->second.bytes);
  imports_.erase(found);
  return Status::ok;
}

}  // namespace brant::port::memory
