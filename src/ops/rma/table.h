#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/object_pool.h"
#include "ops/mapping/table.h"
#include "ops/mover/mover.h"
#include "ops/rma/atomics.h"
#include "ops/rma/fences.h"
#include "ops/rma/target.h"
#include "ops/rma/transfer.h"

namespace brant {

/// The segments of one runtime, its ways into those of others, and what is under way.
class RmaTable final : public Service {
 public:
  static constexpr std::size_t kTransfersMax = 65536;

  explicit RmaTable(Engine& engine)
      : engine_(engine), mappings_(MappingTable::of(engine)), mover_(engine.service<Mover>()) {}

  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] MappingTable& mappings() noexcept { return *mappings_; }
  [[nodiscard]] Mover& mover() noexcept { return mover_; }
  [[nodiscard]] RmaFences& fences() noexcept { return fences_; }
  [[nodiscard]] RmaAtomics& atomics() noexcept { return atomics_; }
  [[nodiscard]] ObjectPool<RmaTransfer>& transfers() noexcept { return transfers_; }

  /// Throws as `brant::expose` does.
  std::shared_ptr<ExposedSegment> expose(Buffer memory);
  void close(ExposedSegment& segment) noexcept;
  /// Null if there is no such open segment here.
  [[nodiscard]] std::shared_ptr<ExposedSegment> find(std::uint64_t id) const noexcept;

  /// Throws as RemoteSegment does.
  RmaTarget& open(Rank rank, const SegmentTicket& ticket);
  void drop(RmaTarget& target) noexcept;
  bool forget(Peer& peer) noexcept override;
  void look_around() noexcept override { atomics_.look_around(); }
  void let_go() noexcept override { atomics_.let_go(); }

 private:
  void fill_ticket(ExposedSegment& segment);

  Engine& engine_;
  const std::shared_ptr<MappingTable> mappings_;
  Mover& mover_;
  ObjectPool<RmaTransfer> transfers_{kTransfersMax};
  RmaFences fences_{engine_, mover_};
  RmaAtomics atomics_{*this};
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<ExposedSegment>> exposed_;
  std::vector<std::unique_ptr<RmaTarget>> targets_;
};

}  // namespace brant
