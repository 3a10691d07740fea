#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "brant/pgas/global_space.h"
#include "core/engine.h"
#include "models/pgas/copies.h"
#include "models/pgas/device_windows.h"
#include "models/pgas/directory.h"
#include "models/pgas/early_tickets.h"
#include "models/pgas/owned_segments.h"
#include "models/pgas/served_copies.h"
#include "models/pgas/words.h"
#include "ops/am/messenger.h"

namespace brant {

/// For errors: "rank 1, segment 3 (cuda), offset 64".
std::string describe(GlobalPtr<const std::byte> at);

class SpaceService;

/// The inner side of a GlobalSpace: its parts, and what they say to the spaces of others.
class SpaceState {
 public:
  SpaceState(GlobalSpace& space, SpaceService& service) noexcept;
  ~SpaceState();
  SpaceState(const SpaceState&) = delete;
  SpaceState& operator=(const SpaceState&) = delete;

  [[nodiscard]] GlobalSpace& space() noexcept { return space_; }
  [[nodiscard]] Runtime& runtime() noexcept { return space_.runtime(); }
  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] int rank() const noexcept { return engine_.job().rank; }
  [[nodiscard]] OwnedSegments& owned() noexcept { return owned_; }
  [[nodiscard]] Directory& directory() noexcept { return directory_; }
  [[nodiscard]] Copies& copies() noexcept { return copies_; }
  [[nodiscard]] ServedCopies& served() noexcept { return served_; }
  [[nodiscard]] DeviceWindows& windows() noexcept { return windows_; }

  // What GlobalSpace does; see there.
  Status post_move(CopyRecord::Task task, GlobalPtr<const std::byte> there, Buffer local, Op& op,
                   CopyOptions& options) noexcept;
  Status post_copy(GlobalPtr<const std::byte> from, GlobalPtr<std::byte> to, std::size_t bytes, Op& op,
                   CopyOptions&& options) noexcept;
  Status post_value(CopyRecord::Task task, GlobalPtr<const std::byte> there, Buffer value, Op& op,
                    CopyOptions& options) noexcept;
  Status post_atomic(GlobalPtr<std::byte> at, const Atomic& what, Op& op, void* before) noexcept;
  /// Behind copies that have not come to `ops/rma` yet, too.
  Status post_fence(Rank rank, Op& op) noexcept;
  Status post_reach(GlobalPtr<const std::byte> at, Op& op) noexcept;
  Status enqueue_copy(StreamHandle stream, GlobalPtr<const std::byte> there, void* local, std::size_t bytes,
                      bool is_put) noexcept;
  Status enqueue_word(StreamHandle stream, GlobalPtr<std::uint64_t> flag, std::uint64_t value, bool is_wait) noexcept;
  /// Copies there begin at once: the segment is known, and so large.
  [[nodiscard]] bool is_reached(GlobalPtr<const std::byte> at, std::size_t bytes) noexcept {
    return find_reached(at, bytes) != nullptr;
  }
  /// Null: it is not reached from here, or has not so much there.
  [[nodiscard]] KnownSegment* find_reached(GlobalPtr<const std::byte> at, std::size_t bytes) noexcept;
  [[nodiscard]] void* host_address(GlobalPtr<const std::byte> at, std::size_t bytes) noexcept;
  [[nodiscard]] void* device_address(GlobalPtr<const std::byte> at, std::size_t bytes) noexcept;

  /// The number of the segment that was made last, in any space of the runtime.
  [[nodiscard]] std::uint32_t& last_segment() noexcept;

  /// What is larger than a ticket waits for room: limit_reached.
  Status say(Rank to, const pgas::WordHeader& header, std::span<const std::byte> payload,
             am::Flow flow = am::Flow::urgent) noexcept;
  /// Tells an owner that its segment is not reached from here any more.
  void let_go(std::int32_t owner, std::uint32_t segment) noexcept;
  /// Wakes the process of a word that was set, which may sleep in a wait for it if it is memory of the host. Looks at
  /// its alarm on this host, and is a message elsewhere.
  void wake_for(GlobalPtr<const std::byte> word) noexcept;
  void hear(std::int32_t from, const pgas::WordHeader& header, std::span<const std::byte> payload) noexcept;
  [[nodiscard]] bool has_gone(std::int32_t rank) const noexcept;
  void look_around() noexcept;
  /// See Service::stalled.
  [[nodiscard]] bool stalled(std::chrono::nanoseconds idle) noexcept;

 private:
  /// Null, and the status is the outcome.
  CopyRecord* take(CopyRecord::Task task, GlobalPtr<const std::byte> there, Op& op, CopyOptions& options) noexcept;

  GlobalSpace& space_;
  SpaceService& service_;
  Engine& engine_;
  OwnedSegments owned_{*this};
  Directory directory_{*this};
  Copies copies_{*this};
  ServedCopies served_{*this};
  DeviceWindows windows_{*this};
};

/// What stays of the global space between one GlobalSpace of a runtime and the next: others are answered, what they
/// publish is kept for the next one, and numbers of segments are not given twice.
class SpaceService final : public Service {
 public:
  explicit SpaceService(Engine& engine);

  [[nodiscard]] SpaceState* state() const noexcept { return state_; }
  [[nodiscard]] std::uint32_t& last_segment() noexcept { return last_segment_; }
  /// Null: there is no space any more. Another one gets what was published before.
  void set_state(SpaceState* state) noexcept;
  /// The process answers nothing any more.
  [[nodiscard]] bool has_gone(std::int32_t rank) const noexcept;
  [[nodiscard]] Engine& engine() const noexcept { return engine_; }
  Status say(Rank to, const pgas::WordHeader& header, std::span<const std::byte> payload,
             am::Flow flow = am::Flow::urgent) noexcept;

  void look_around() noexcept override;
  bool stalled(std::chrono::nanoseconds idle, bool) noexcept override {
    return state_ != nullptr && state_->stalled(idle);
  }

 private:
  static void on_message(void* service, am::Message& message) noexcept;
  void hear(std::int32_t from, const pgas::WordHeader& header, std::span<const std::byte> payload) noexcept;

  Engine& engine_;
  am::Messenger& messenger_;
  SpaceState* state_ = nullptr;
  std::uint32_t last_segment_ = 0;
  EarlyTickets early_;
};

}  // namespace brant
