#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "base/memory_file.h"
#include "port/memory.h"

namespace brant::port::memory {

/// Host memory that other processes of this host can map: each allocation is a file without a name. Bounded, because
/// each keeps a file open: at most kSharesMax. Any thread.
class HostShares {
 public:
  static constexpr std::size_t kSharesMax = 256;

  HostShares() = default;
  HostShares(const HostShares&) = delete;
  HostShares& operator=(const HostShares&) = delete;
  /// Unmaps everything.
  ~HostShares();

  /// Whole pages, zero. limit_reached, no_memory.
  Result<void*> allocate(std::size_t bytes) noexcept;
  /// Frees the memory even if others map it. not_found: not allocated here.
  Status free(void* base) noexcept;

  /// What another process needs to map `allocation`, for a pointer into it. wrong_kind: it is not one of these.
  Result<ExportRecord> export_allocation(const PointerInfo& allocation, const void* pointer) noexcept;
  /// The exported pointer's address here. A mapping outlives its owner's process with its bytes; when the owner frees
  /// the memory, it reads as zeroes. invalid_argument: no such record; peer_lost: the owner is gone; not_found: freed.
  Result<void*> import_allocation(const ExportRecord& record) noexcept;
  /// not_found.
  Status close_import(void* imported) noexcept;

  /// Made by an export of this class.
  static bool made(const ExportRecord& record) noexcept { return host_accessible(record.kind); }

 private:
  struct Range {
    void* base;
    std::size_t bytes;
  };

  std::mutex mutex_;
  std::map<void*, MemoryFile> files_;    ///< Of allocations, by base. Protected by mutex_, as the next.
  std::multimap<void*, Range> imports_;  ///< By the address that the importer got.
};

}  // namespace brant::port::memory
