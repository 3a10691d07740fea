#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "brant/base/clock.h"
#include "brant/base/intrusive_list.h"
#include "port/memory.h"

namespace brant {

class Imports;

/// An allocation of a peer that this process knows how to map, and what has become of that.
struct Mapping {
  Mapping(Imports& imports_in, const port::ExportRecord& record_in) noexcept : imports(imports_in), record(record_in) {}

  [[nodiscard]] bool is_mapped() const noexcept { return base != nullptr; }

  Imports& imports;
  const port::ExportRecord record;  ///< Of the whole allocation.
  std::byte* base = nullptr;        ///< Null: not mapped (any more, or not yet).
  std::uint32_t users = 0;          ///< Leases.
  bool announced = false;           ///< Its owner has told this process of it, for good or until it is withdrawn.
  bool withdrawn = false;           ///< It is no more: it is unmapped as soon as nobody uses it.
  bool refused = false;             ///< The device cannot map it.
  bool asked = false;               ///< Its owner was asked to tell of its end, and of what died before it.
  bool watched = false;             ///< It has told of what died before in the same block of the device.
  bool registered = false;          ///< Host memory that the device reaches through this mapping.
  bool unregistrable = false;       ///< Host memory that it does not, as was tried.
  /// Of one that is mapped by means of a file: where that is. `late`: so long asked for that nobody waits for it.
  enum class File : std::uint8_t { here_or_none, wanted, asked_for, late } file = File::here_or_none;
  std::uint64_t file_number = 0;  ///< Of the file that was asked for.
  std::uint64_t address = 0;      ///< In its owner's process; 0: the owner knows it by its id.
  std::uint32_t unanswered = 0;   ///< Its owner withdrew it so often, and has not heard that it is closed.
  std::uint64_t tried = 0;        ///< How much had been closed when there was no room for it, or no way; see Imports.
  TimePoint used_at{};
  TimePoint asked_at{};  ///< For its file.
  ListHook<Mapping> closing_hook;
  ListHook<Mapping> file_hook;
};

/// Whoever uses mapped memory of a peer holds one: while it lives the memory stays mapped, whatever its owner does.
/// Costs a count. The worker's thread.
class MappingLease {
 public:
  MappingLease() noexcept = default;
  explicit MappingLease(Mapping& mapping) noexcept : mapping_(&mapping) { ++mapping.users; }
  MappingLease(MappingLease&& other) noexcept : mapping_(std::exchange(other.mapping_, nullptr)) {}
  MappingLease& operator=(MappingLease&& other) noexcept {
    std::swap(mapping_, other.mapping_);
    return *this;
  }
  ~MappingLease() {
    if (mapping_ != nullptr && --mapping_->users == 0 && mapping_->withdrawn) let_go(*mapping_);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return mapping_ != nullptr; }
  /// Of what is mapped, which must be something.
  [[nodiscard]] MemoryKind kind() const noexcept { return mapping_->record.kind; }
  /// What `reach_by_device` would lock of the host's memory: nothing if it is registered, or of a device.
  [[nodiscard]] std::uint64_t bytes_to_lock() const noexcept {
    const bool is_reached = mapping_ == nullptr || mapping_->registered || !host_accessible(mapping_->record.kind);
    return is_reached ? 0 : mapping_->record.bytes;
  }
  /// The device reaches it too, as long as it is mapped. See Imports::reach_by_device.
  [[nodiscard]] bool reach_by_device() const noexcept { return mapping_ != nullptr && reach_by_device(*mapping_); }

 private:
  static void let_go(Mapping& mapping) noexcept;
  static bool reach_by_device(Mapping& mapping) noexcept;

  Mapping* mapping_ = nullptr;
};

/// Memory of a peer as this process, or its device, sees it. Null: it is not mapped.
struct MappedMemory {
  std::byte* address = nullptr;
  MappingLease lease;
};

}  // namespace brant
