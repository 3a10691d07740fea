#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <utility>

#include "base/memory_file.h"
#include "port/memory.h"
#include "port/memory/allocation_map.h"
#include "port/memory/emulated/address_window.h"

namespace brant::port::memory {

/// One allocation mapped for the engine. Kept alive by work in flight, so that memory freed too early is a wrong result
/// and never a crash of a stream's thread.
class EmulatedMapping {
 public:
  /// Maps the file at fresh addresses of the window. no_memory.
  static Result<std::shared_ptr<EmulatedMapping>> create(AddressWindow& window, MemoryFile file) noexcept;

  EmulatedMapping(AddressWindow& window, MemoryFile file, std::size_t offset) noexcept
      : window_(window), file_(std::move(file)), offset_(offset) {}
  EmulatedMapping(const EmulatedMapping&) = delete;
  EmulatedMapping& operator=(const EmulatedMapping&) = delete;
  ~EmulatedMapping();

  [[nodiscard]] const MemoryFile& file() const noexcept { return file_; }
  [[nodiscard]] std::byte* device_address() const noexcept { return window_.device_address(offset_); }
  [[nodiscard]] std::byte* engine_address() const noexcept { return window_.engine_address(offset_); }

 private:
  AddressWindow& window_;
  MemoryFile file_;
  std::size_t offset_;
};

/// A range the engine may read and write, and what keeps it in place.
struct EnginePlace {
  std::byte* address = nullptr;
  std::shared_ptr<EmulatedMapping> hold;  ///< Null for host memory.
};

/// All memory of the process that emulated devices can reach. There is one per process, like the unified address space
/// of a GPU driver: a pointer of one emulated device can be used by another, and a kernel's pointer says by itself
/// where it lies. Any thread. Lookups take a shared lock and O(log n); pointers outside the window cost two
/// comparisons.
class EmulatedMemory {
 public:
  /// The device object that allocates or imports; several may share an ordinal (ranks of a test in one process).
  struct Owner {
    const void* device = nullptr;
    int ordinal = 0;
  };

  /// Lives until the process ends, so that streams still running then do not lose it.
  static EmulatedMemory& of_process() noexcept;

  Result<PointerInfo> allocate(Owner owner, std::size_t bytes) noexcept;
  /// not_found; invalid_argument for a pointer into the middle, of another device, or imported.
  Result<PointerInfo> free(Owner owner, const void* pointer) noexcept;
  /// Frees and unmaps whatever a device leaves behind; returns how many pieces.
  std::size_t release_all(Owner owner) noexcept;
  /// Emulated, pinned and registered memory; not_found.
  [[nodiscard]] Result<PointerInfo> query(const void* pointer) const noexcept;

  Result<ExportRecord> export_allocation(const void* pointer) noexcept;
  /// One mapping per allocation, counted.
  Result<void*> import_allocation(Owner owner, const ExportRecord& record) noexcept;
  Result<ExportedFile> export_file(const void* pointer) noexcept;
  Result<void*> import_file(Owner owner, const ExportRecord& record, int file) noexcept;
  Status close_import(const void* imported) noexcept;

  /// Host memory the devices may write to: pinned allocations and registered ranges.
  AllocationMap& reachable_host() noexcept { return reachable_host_; }

  /// Where the engine finds `bytes` at `pointer`. wrong_kind: an address of the device window where nothing is
  /// allocated (any more). invalid_argument: the range leaves its allocation. Other pointers are host memory and
  /// returned as they are.
  Result<EnginePlace> place(const void* pointer, std::size_t bytes) const noexcept;
  /// The same for an access by the device, which reaches host memory only if it is pinned or registered: else
  /// wrong_kind.
  Result<EnginePlace> place_for_device(const void* pointer, std::size_t bytes) const noexcept;

  /// For kernels: null, and one line in the log, for what the device cannot reach. Cost: 5 ns where the thread has
  /// asked for the same allocation a short time ago and none has been freed since.
  [[nodiscard]] void* engine_address(void* pointer) const noexcept;

 private:
  struct Entry {
    PointerInfo info;
    std::shared_ptr<EmulatedMapping> mapping;
    const void* owner = nullptr;
    unsigned imports = 0;                          ///< Times imported; 0 for memory of this process.
    std::pair<std::uint64_t, std::uint64_t> file;  ///< Filesystem and inode of an import.
  };
  using Entries = std::map<std::uintptr_t, Entry>;

  EmulatedMemory() = default;
  Result<PointerInfo> insert(Entry entry) noexcept;
  [[nodiscard]] Entries::const_iterator find_locked(const void* pointer) const noexcept;
  Result<void*> import_mapped(Owner owner, const ExportRecord& record, const MemoryFileRecord& file_record,
                              MemoryFile file) noexcept;
  Result<void*> reuse_import(const MemoryFileRecord& record, std::size_t offset) noexcept;

  AddressWindow window_;
  AllocationMap reachable_host_;
  mutable std::shared_mutex mutex_;
  Entries entries_;                           ///< By device address. Protected by mutex_.
  std::atomic<std::uint64_t> generation_{1};  ///< Of entries_: another one when some have gone.
};

}  // namespace brant::port::memory
