#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "core/engine.h"
#include "ops/mapping/mapping.h"
#include "ops/mapping/mapping_message.h"

namespace brant {

class MappingTable;

/// Who will reach it. `device`: host memory is registered with it.
enum class Reach : std::uint8_t { cpu, device };

/// What this process has mapped of one peer. Each allocation is mapped once, for all who use it, and stays mapped while
/// nobody does: until its owner says that it is no more, or there are too many (see MappingTable).
class Imports {
 public:
  /// Known, mapped or not, those included whose closing is due.
  static constexpr std::size_t kKnownMax = 2048;

  Imports(MappingTable& table, Engine& engine, Peer& peer) noexcept : table_(table), engine_(engine), peer_(peer) {}
  Imports(const Imports&) = delete;
  Imports& operator=(const Imports&) = delete;
  /// Unmaps everything.
  ~Imports();

  /// Memory of the peer in an allocation that it told this process of. Null if that could not be mapped, or has not so
  /// many bytes there, or is not of this sort. A few instructions for the allocation that was asked for last; a look-up
  /// for others; a call of the device only for one that was unmapped for want of room.
  [[nodiscard]] MappedMemory take(std::uint64_t buffer_id, std::uint64_t offset, std::uint64_t bytes,
                                  Reach reach) noexcept;
  /// The same of memory that the peer describes by a record: `bytes` from the exported pointer on, which is `address`
  /// over there. The peer hears that it is mapped; 0: that is nothing to it, and who opened it is the only user.
  /// in_progress: not yet, since memory that the peer has freed is to be unmapped first (see DeferredWork), the peer is
  /// asked for what it has freed, or the file is on its way (`awaits`). not_supported, no_memory, limit_reached,
  /// invalid_argument (the record contradicts what is known), and what `Device::import_allocation` says.
  Result<MappedMemory> open(const port::ExportRecord& record, std::uint64_t bytes, std::uint64_t address) noexcept;

  /// `take` finds nothing yet, and may later: the file by means of which the allocation is mapped is on its way.
  [[nodiscard]] bool awaits(std::uint64_t buffer_id) noexcept;
  /// What `open` or `take` could not map may be tried again, since freed memory of the peer is in its way: that is
  /// mapped here and in use still, or this process has not heard of it. What else is in the way is the network
  /// library's own, which gets rid of it by itself.
  [[nodiscard]] bool is_hindered(std::uint64_t buffer_id) noexcept {
    const Mapping* mapping = find(buffer_id);
    return mapping != nullptr && is_hindered(*mapping);
  }
  /// The peer has answered whether freed memory is in the way of what was opened, or need not.
  [[nodiscard]] bool has_heard(std::uint64_t buffer_id) noexcept {
    const Mapping* mapping = find(buffer_id);
    return mapping == nullptr || !mapping->asked || mapping->watched || peer_.lost;
  }

  /// The peer told how to map an allocation.
  void on_exported(std::span<const std::byte> packed) noexcept;
  /// The peer tells of the end of what was opened, and has told of what died before.
  void on_watched(std::uint64_t buffer_id) noexcept;
  /// The peer has answered for a file.
  void on_handed(const MappingMessage& message) noexcept;
  /// The peer has freed an allocation.
  void on_withdrawn(std::uint64_t buffer_id) noexcept;
  /// The peer is gone.
  void withdraw_all() noexcept;

  /// A device reaches what is mapped: its own sort of memory at once, a peer's host memory once the mapping is
  /// registered with it, which is done when it is asked for first and takes some microseconds and about 100 us a MB
  /// (pages are locked); it is undone when the mapping is closed. What its owner pinned is not pinned for this process.
  bool reach_by_device(Mapping& mapping) noexcept;
  /// Nobody uses a withdrawn one any more.
  void let_go(Mapping& mapping) noexcept;
  /// Unmaps it. Not within progress, unless it is host memory that no device reaches.
  void close(Mapping& mapping) noexcept;
  /// The one that nobody has used for longest, if it was not used after `before`. Null: none.
  [[nodiscard]] Mapping* idlest(TimePoint before) noexcept;

  [[nodiscard]] std::size_t known() const noexcept { return known_.size(); }
  [[nodiscard]] Peer& peer() noexcept { return peer_; }

 private:
  [[nodiscard]] Mapping* find(std::uint64_t buffer_id) noexcept;
  Mapping* remember(const port::ExportRecord& record) noexcept;
  void forget(Mapping& mapping) noexcept;
  Status map(Mapping& mapping) noexcept;
  Status map_at(Mapping& mapping, const Result<void*>& base) noexcept;
  Status map_file(Mapping& mapping, const Result<UniqueFd>& file) noexcept;
  Status note_refused(Mapping& mapping, Status why) noexcept;
  [[nodiscard]] bool is_waiting(const Mapping& mapping) const noexcept;
  [[nodiscard]] bool is_hindered(const Mapping& mapping) const noexcept;
  void revive(Mapping& mapping) noexcept;
  void answer(Mapping& mapping) noexcept;
  void tell_closed(std::uint64_t buffer_id, std::uint32_t withdrawals) noexcept;
  void withdraw(Mapping& mapping) noexcept;
  void unmap(Mapping& mapping) noexcept;
  void watch(Mapping& mapping, std::uint64_t address) noexcept;
  [[nodiscard]] static bool is_sound(const port::ExportRecord& record) noexcept;
  [[nodiscard]] static bool are_same(const port::ExportRecord& a, const port::ExportRecord& b) noexcept;

  MappingTable& table_;
  Engine& engine_;
  Peer& peer_;
  std::unordered_map<std::uint64_t, Mapping> known_;  ///< By buffer id.
  Mapping* last_ = nullptr;                           ///< Of `known_`: messages to one allocation come in bursts.
};

}  // namespace brant
