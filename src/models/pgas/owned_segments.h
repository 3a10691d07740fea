#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "brant/core/future.h"
#include "brant/core/runtime.h"
#include "brant/ops/rma.h"
#include "brant/pgas/global_segment.h"
#include "core/engine.h"
#include "models/pgas/segment_allocator.h"

namespace brant {

class OwnedSegments;
class SpaceState;

/// A segment of this process, shared by its GlobalSegment and the space.
class OwnedSegment {
 public:
  OwnedSegment(SpaceState& space_in, int rank_in, std::uint32_t id_in, Memory memory_in, Segment segment_in,
               unsigned device_in)
      : space(&space_in),
        rank(rank_in),
        id(id_in),
        device(device_in),
        memory(std::move(memory_in)),
        segment(std::move(segment_in)),
        view(segment.memory()),
        allocator(view.bytes, reinterpret_cast<std::uintptr_t>(view.data)) {}

  [[nodiscard]] GlobalPtr<std::byte> at(std::uint64_t offset) const noexcept {
    return {rank, id, offset, static_cast<unsigned>(view.kind), device};
  }
  [[nodiscard]] bool covers(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return offset <= view.bytes && bytes <= view.bytes - offset;
  }

  SpaceState* space;  ///< Null once it is retired.
  const int rank;
  const std::uint32_t id;
  const unsigned device;
  Memory memory;  ///< None of memory that was adopted.
  Segment segment;
  const Buffer view;
  SegmentAllocator allocator;
  std::vector<std::int32_t> holders;  ///< Who was told how it is reached, each once.
  std::optional<Promise<void>> retired;
  Op told;  ///< Fired when nobody reaches it any more.
};

/// The segments of one process: those that can be used, and those that wait until nobody uses them any more.
class OwnedSegments final : private DeferredWork {
 public:
  explicit OwnedSegments(SpaceState& space) noexcept : space_(space) {}
  ~OwnedSegments();
  OwnedSegments(const OwnedSegments&) = delete;
  OwnedSegments& operator=(const OwnedSegments&) = delete;

  /// Throws as GlobalSpace does.
  std::shared_ptr<OwnedSegment> add(Memory memory, Buffer view);
  /// Null: there is none of that number, or it is being retired.
  [[nodiscard]] OwnedSegment* find(std::uint32_t id) const noexcept;

  /// Tells a process how the segment is reached, or that there is none.
  Status tell(Rank to, std::uint32_t id) noexcept;
  void retire(const std::shared_ptr<OwnedSegment>& owned) noexcept;
  void retire_all() noexcept;
  void note_let_go(std::int32_t holder, std::uint32_t id) noexcept;
  /// Those that have died or ended hold nothing.
  void look_around() noexcept;
  [[nodiscard]] bool any_retiring() const noexcept {
    return !retiring_.empty() || !unreached_.empty() || !closed_.empty();
  }

 private:
  void look_at_retiring() noexcept;
  static void tell_retired(void* owned, const OpResult&) noexcept;
  /// Frees memory, which may wait for the device.
  void run_deferred() noexcept override;

  SpaceState& space_;
  std::unordered_map<std::uint32_t, std::shared_ptr<OwnedSegment>> open_;
  std::vector<std::shared_ptr<OwnedSegment>> retiring_;
  std::vector<std::shared_ptr<OwnedSegment>> unreached_;  ///< Nobody reaches them: to be closed.
  std::vector<std::shared_ptr<OwnedSegment>> closed_;     ///< Who retired them is to be told.
};

}  // namespace brant
