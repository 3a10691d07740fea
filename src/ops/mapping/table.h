#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ops/mapping/exports.h"
#include "ops/mapping/file_fetches.h"
#include "ops/mapping/flag_page.h"
#include "ops/mapping/imports.h"

namespace brant {

/// What this process and one other have mapped of each other.
struct PeerMappings final : PeerOp {
  PeerMappings(MappingTable& table_in, Engine& engine, Peer& peer) noexcept
      : table(table_in), exports(engine, peer), imports(table_in, engine, peer), flags(engine, peer) {}

  MappingTable& table;
  Exports exports;
  Imports imports;
  FlagPage flags;
};

/// What this process and the others of its host have mapped of each other: one table for channels, segments, streams
/// and flags. It outlives every lease, since whoever holds leases holds the table.
///
/// Memory that its owner has freed is unmapped soon after, and what nobody uses makes room for others. Unmapping device
/// memory may wait for the device, so it is deferred (see DeferredWork); the driver keeps freed memory alive until
/// then. Bounded: so many mappings in all. A mapping costs its process addresses, and no memory, so that bytes are not
/// counted.
class MappingTable final : private DeferredWork {
 public:
  struct Bounds {
    std::size_t mapped = 4096;
    std::chrono::milliseconds idle{1000};             ///< What nobody has used for so long makes room for others.
    std::chrono::milliseconds file_patience{10'000};  ///< See FileFetches.
  };

  explicit MappingTable(Engine& engine) : MappingTable(engine, Bounds{}) {}
  MappingTable(Engine& engine, const Bounds& bounds);
  MappingTable(const MappingTable&) = delete;
  MappingTable& operator=(const MappingTable&) = delete;
  /// Unmaps everything.
  ~MappingTable();

  /// The one of an engine, made on first use: layers ask for it when they are made, and keep it. Throws bad_alloc.
  static std::shared_ptr<MappingTable> of(Engine& engine);

  /// Throws bad_alloc.
  PeerMappings& with(Peer& peer);
  /// See Exports::make_way; for an allocation whose peers are not known yet.
  void make_way(const port::PointerInfo& info) noexcept;
  /// See Service::forget.
  bool forget(const Peer& peer) noexcept;
  /// See Exports::look_for_freed; some of all. And for files that do not come.
  void look_around() noexcept;

  [[nodiscard]] std::size_t mapped() const noexcept { return mapped_; }
  /// Mapped, and about to be unmapped.
  [[nodiscard]] bool closing() const noexcept { return !closing_.empty(); }

  // For Imports.
  [[nodiscard]] FileFetches& fetches() noexcept { return fetches_; }
  /// There is room for one more. If not, one that nobody uses is unmapped for those that come later.
  [[nodiscard]] bool has_room() noexcept;
  void note_mapped() noexcept { ++mapped_; }
  void note_unmapped() noexcept { --mapped_; }
  /// Mappings of freed memory, some of which may be in the way of new ones.
  void note_withdrawn(int change) noexcept { withdrawn_ += change; }
  [[nodiscard]] bool may_be_in_the_way() const noexcept { return withdrawn_ != 0; }
  /// Changes when something has been closed: what could not be mapped before is tried once more.
  [[nodiscard]] std::uint64_t closed() const noexcept { return closed_; }
  void close_later(Mapping& mapping) noexcept;
  void keep(Mapping& mapping) noexcept {
    if (Closing::linked(mapping)) closing_.remove(mapping);
  }

 private:
  using Closing = IntrusiveList<Mapping, &Mapping::closing_hook>;

  static constexpr unsigned kLooks = 16;
  /// See Exports.
  static constexpr auto kLookAgain = std::chrono::milliseconds(100);

  void run_deferred() noexcept override;
  static void on_record(void* table, const port::LinkRecord& record) noexcept;
  void on_lost(PeerMappings& peer) noexcept;

  Engine& engine_;
  FileFetches fetches_;
  const Bounds bounds_;
  std::size_t mapped_ = 0;
  std::ptrdiff_t withdrawn_ = 0;
  std::uint64_t closed_ = 1;
  TimePoint look_for_room_at_{};
  bool full_told_ = false;
  std::size_t looked_ = 0;
  Closing closing_;
  std::unordered_map<std::int32_t, std::unique_ptr<PeerMappings>> by_rank_;
  std::vector<PeerMappings*> peers_;  ///< The same, in the order in which they came.
};

}  // namespace brant
