#include "port/memory/emulated/emulated_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>
#include <mutex>
#include <new>

#include "base/log.h"

namespace brant::port::memory {
namespace {

/// New memory is filled with this up to the limit below, so that programs that rely on zeroes fail in tests.
constexpr int kFreshByte = 0xa5;
constexpr std::size_t kFreshBytesMax = std::size_t{1} << 20;

std::uintptr_t address(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }

/// The allocations that a thread has asked for last: kernels name one address after the other, and the lock of all
/// entries, taken for each, would be most of what they do.
class LastPlaces {
 public:
  [[nodiscard]] std::byte* find(std::uintptr_t pointer, std::uint64_t generation) const noexcept {
    if (generation != generation_) return nullptr;
    for (const Place& place : places_) {
      if (pointer - place.begin < place.bytes) return place.engine + (pointer - place.begin);
    }
    return nullptr;
  }
  void add(std::uintptr_t begin, std::size_t bytes, std::byte* engine, std::uint64_t generation) noexcept {
    if (generation != generation_) places_ = {};
    generation_ = generation;
    places_[next_++ % places_.size()] = {begin, bytes, engine};
  }

 private:
  struct Place {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    std::byte* engine = nullptr;
  };
  std::array<Place, 8> places_{};
  std::uint64_t generation_ = 0;
  std::size_t next_ = 0;
};

}  // namespace

Result<std::shared_ptr<EmulatedMapping>> EmulatedMapping::create(AddressWindow& window, MemoryFile file) noexcept {
  const std::size_t bytes = file.bytes();
  const int fd = file.fd();
  const Result<std::size_t> offset = window.take(bytes);
  if (!offset) return offset.status();
  std::shared_ptr<EmulatedMapping> mapping;
  try {
    mapping = std::make_shared<EmulatedMapping>(window, std::move(file), *offset);
  } catch (const std::bad_alloc&) {
    window.give_back(*offset, bytes);
    return Status::no_memory;
  }
  void* place = window.engine_address(*offset);
  if (::mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    log::error("emulated memory: mapping {} bytes failed: {}", bytes, std::strerror(errno));
    return Status::no_memory;  // the mapping's destructor gives the addresses back
  }
  return mapping;
}

EmulatedMapping::~EmulatedMapping() {
  // Put the reservation back in one step: between two calls another thread's mmap could take the addresses.
  ::mmap(engine_address(), file_.bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  window_.give_back(offset_, file_.bytes());
}

EmulatedMemory& EmulatedMemory::of_process() noexcept {
  static EmulatedMemory* memory = new EmulatedMemory();
  return *memory;
}

Result<PointerInfo> EmulatedMemory::insert(Entry entry) noexcept {
  entry.info.base = entry.mapping->device_address();
  entry.info.kind = MemoryKind::emulated;
  entry.info.buffer_id = next_buffer_id();
  try {
    const std::unique_lock lock(mutex_);
    const PointerInfo info = entry.info;
    entries_.emplace(address(info.base), std::move(entry));
    return info;
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

Result<PointerInfo> EmulatedMemory::allocate(Owner owner, std::size_t bytes) noexcept {
  if (bytes == 0) return Status::invalid_argument;
  if (bytes > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max() / 2)) return Status::no_memory;
  Result<MemoryFile> file = MemoryFile::create("brant-emulated", bytes);
  if (!file) return file.status();
  Result<std::shared_ptr<EmulatedMapping>> mapping = EmulatedMapping::create(window_, std::move(*file));
  if (!mapping) return mapping.status();
  std::memset((*mapping)->engine_address(), kFreshByte, std::min(bytes, kFreshBytesMax));
  return insert({.info = {.device = owner.ordinal, .bytes = bytes},
                 .mapping = std::move(*mapping),
                 .owner = owner.device,
                 .imports = 0,
                 .file = {}});
}

EmulatedMemory::Entries::const_iterator EmulatedMemory::find_locked(const void* pointer) const noexcept {
  const auto after = entries_.upper_bound(address(pointer));
  if (after == entries_.begin()) return entries_.end();
  const auto found = std::prev(after);
  return address(pointer) - found->first < found->second.info.bytes ? found : entries_.end();
}

Result<PointerInfo> EmulatedMemory::free(Owner owner, const void* pointer) noexcept {
  std::shared_ptr<EmulatedMapping> last;  // unmapped after the lock is given up
  const std::unique_lock lock(mutex_);
  const auto found = find_locked(pointer);
  if (found == entries_.end()) return Status::not_found;
  const Entry& entry = found->second;
  if (entry.info.base != pointer || entry.owner != owner.device || entry.imports != 0) return Status::invalid_argument;
  const PointerInfo info = entry.info;
  last = entry.mapping;
  entries_.erase(found);
  generation_.fetch_add(1, std::memory_order_release);
  return info;
}

std::size_t EmulatedMemory::release_all(Owner owner) noexcept {
  Entries released;  // unmapped after the lock is given up
  const std::unique_lock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->second.owner == owner.device) released.insert(entries_.extract(entry));
    entry = next;
  }
  generation_.fetch_add(1, std::memory_order_release);
  return released.size();
}

Result<PointerInfo> EmulatedMemory::query(const void* pointer) const noexcept {
  if (!window_.contains(pointer)) return reachable_host_.find(pointer);
  const std::shared_lock lock(mutex_);
  const auto found = find_locked(pointer);
  if (found == entries_.end()) return Status::not_found;
  return found->second.info;
}

Result<ExportRecord> EmulatedMemory::export_allocation(const void* pointer) noexcept {
  std::shared_ptr<EmulatedMapping> mapping;
  ExportRecord record;
  {
    const std::shared_lock lock(mutex_);
    const auto found = find_locked(pointer);
    if (found == entries_.end()) return Status::not_found;
    const Entry& entry = found->second;
    if (entry.imports != 0) return Status::not_supported;  // only the owner can say when the memory is freed
    record.kind = MemoryKind::emulated;
    record.buffer_id = entry.info.buffer_id;
    record.bytes = entry.info.bytes;
    record.offset = address(pointer) - found->first;
    mapping = entry.mapping;
  }
  const Result<MemoryFileRecord> file = mapping->file().record();
  if (!file) return file.status();
  static_assert(sizeof(MemoryFileRecord) <= sizeof(record.handle));
  std::memcpy(record.handle, &*file, sizeof(MemoryFileRecord));
  return record;
}

Result<void*> EmulatedMemory::reuse_import(const MemoryFileRecord& record, std::size_t offset) noexcept {
  const std::pair key{record.filesystem, record.inode};
  const std::unique_lock lock(mutex_);
  for (auto& [base, entry] : entries_) {
    if (entry.imports == 0 || entry.file != key) continue;
    if (offset >= entry.info.bytes) return Status::invalid_argument;
    ++entry.imports;
    return static_cast<void*>(entry.mapping->device_address() + offset);
  }
  return Status::not_found;
}

Result<void*> EmulatedMemory::import_allocation(Owner owner, const ExportRecord& record) noexcept {
  MemoryFileRecord file_record;
  std::memcpy(&file_record, record.handle, sizeof(file_record));
  if (record.offset >= record.bytes || record.bytes > file_record.bytes) return Status::invalid_argument;
  // Opened even if it is mapped already: this is how a dead or restarted owner is noticed.
  Result<MemoryFile> file = MemoryFile::open(file_record);
  if (!file) return file.status();
  const Result<void*> known = reuse_import(file_record, record.offset);
  if (known || known.status() != Status::not_found) return known;
  return import_mapped(owner, record, file_record, std::move(*file));
}

Result<ExportedFile> EmulatedMemory::export_file(const void* pointer) noexcept {
  Result<ExportRecord> record = export_allocation(pointer);
  if (!record) return record.status();
  MemoryFileRecord file_record;
  std::memcpy(&file_record, record->handle, sizeof(file_record));
  UniqueFd file(::fcntl(file_record.fd, F_DUPFD_CLOEXEC, 0));
  if (!file) return Status::limit_reached;
  record->means = ExportRecord::Means::file;
  return ExportedFile{std::move(file), *record};
}

Result<void*> EmulatedMemory::import_file(Owner owner, const ExportRecord& record, int file) noexcept {
  MemoryFileRecord file_record;
  std::memcpy(&file_record, record.handle, sizeof(file_record));
  if (record.offset >= record.bytes || record.bytes > file_record.bytes) return Status::invalid_argument;
  Result<MemoryFile> copy = MemoryFile::copy(file_record, file);
  if (!copy) return copy.status();
  return import_mapped(owner, record, file_record, std::move(*copy));
}

Result<void*> EmulatedMemory::import_mapped(Owner owner, const ExportRecord& record,
                                            const MemoryFileRecord& file_record, MemoryFile file) noexcept {
  Result<std::shared_ptr<EmulatedMapping>> mapping = EmulatedMapping::create(window_, std::move(file));
  if (!mapping) return mapping.status();
  const Result<PointerInfo> info = insert({.info = {.device = owner.ordinal, .bytes = record.bytes},
                                           .mapping = std::move(*mapping),
                                           .owner = owner.device,
                                           .imports = 1,
                                           .file = {file_record.filesystem, file_record.inode}});
  if (!info) return info.status();
  return static_cast<void*>(static_cast<std::byte*>(info->base) + record.offset);
}

Status EmulatedMemory::close_import(const void* imported) noexcept {
  std::shared_ptr<EmulatedMapping> last;
  const std::unique_lock lock(mutex_);
  const auto constant = find_locked(imported);
  if (constant == entries_.end()) return Status::not_found;
  const auto found = entries_.erase(constant, constant);  // an iterator that may write
  if (found->second.imports == 0) return Status::invalid_argument;
  if (--found->second.imports > 0) return Status::ok;
  last = found->second.mapping;
  entries_.erase(found);
  generation_.fetch_add(1, std::memory_order_release);
  return Status::ok;
}

Result<EnginePlace> EmulatedMemory::place(const void* pointer, std::size_t bytes) const noexcept {
  const auto* first = static_cast<const std::byte*>(pointer);
  if (!window_.contains(first) && !window_.contains(first + bytes - 1)) {
    return EnginePlace{.address = const_cast<std::byte*>(first), .hold = nullptr};
  }
  const std::shared_lock lock(mutex_);
  const auto found = find_locked(pointer);
  if (found == entries_.end()) {
    log::warn("emulated device: {} bytes at {} were named, but nothing is allocated there (freed before?)", bytes,
              pointer);
    return Status::wrong_kind;
  }
  const Entry& entry = found->second;
  const std::size_t offset = address(pointer) - found->first;
  if (bytes > entry.info.bytes - offset) {
    log::warn("emulated device: {} bytes at offset {} were named, but the allocation at {} has only {}", bytes, offset,
              entry.info.base, entry.info.bytes);
    return Status::invalid_argument;
  }
  return EnginePlace{.address = entry.mapping->engine_address() + offset, .hold = entry.mapping};
}

Result<EnginePlace> EmulatedMemory::place_for_device(const void* pointer, std::size_t bytes) const noexcept {
  Result<EnginePlace> where = place(pointer, bytes);
  if (!where || where->hold != nullptr) return where;
  const Result<PointerInfo> host = reachable_host_.find(pointer);
  if (!host) {
    log::warn(
        "emulated device: {} bytes at {} are host memory that the device cannot reach: allocate them as pinned, or "
        "register_host "
        "them",
        bytes, pointer);
    return Status::wrong_kind;
  }
  if (bytes > host->bytes - (address(pointer) - address(host->base))) return Status::invalid_argument;
  return where;
}

void* EmulatedMemory::engine_address(void* pointer) const noexcept {
  static thread_local LastPlaces last;
  if (window_.contains(pointer)) {
    if (std::byte* const found = last.find(address(pointer), generation_.load(std::memory_order_acquire))) return found;
    const std::shared_lock lock(mutex_);
    if (const auto found = find_locked(pointer); found != entries_.end()) {
      const auto& [begin, entry] = *found;
      last.add(begin, entry.info.bytes, entry.mapping->engine_address(), generation_.load(std::memory_order_relaxed));
      return entry.mapping->engine_address() + (address(pointer) - begin);
    }
  }
  const Result<EnginePlace> where = place_for_device(pointer, 1);
  return where ? where->address : nullptr;
}

}  // namespace brant::port::memory
