#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "brant/pgas/global_space.h"
#include "core/engine.h"
#include "models/pgas/copies.h"
#include "models/pgas/directory.h"
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

  // What GlobalSpace does; see there.
  Status post_move(CopyRecord::Task task, GlobalPtr<const std::byte> there, Buffer local, Op& op,
                   CopyOptions& options) noexcept;
  Status post_copy(GlobalPtr<const std::byte> from, GlobalPtr<std::byte> to, std::size_t bytes, Op& op,
                   CopyOptions&& options) noexcept;
  Status post_value(CopyRecord::Task task, GlobalPtr<const std::byte> there, Buffer value, Op& op,
                    CopyOptions& options) noexcept;
  Status post_atomic(GlobalPtr<std::byte> at, const Atomic& what, Op& op, void* before) noexcept;
  Status post_reach(GlobalPtr<const std::byte> at, Op& op) noexcept;
  Status enqueue_copy(StreamHandle stream, GlobalPtr<const std::byte> there, void* local, std::size_t bytes,
                      bool is_put) noexcept;
  Status enqueue_word(StreamHandle stream, GlobalPtr<std::uint64_t> flag, std::uint64_t value, bool is_wait) noexcept;
  [[nodiscard]] void* host_address(GlobalPtr<const std::byte> at, std::size_t bytes) noexcept;
  [[nodiscard]] void* device_address(GlobalPtr<const std::byte> at, std::size_t bytes) noexcept;

  Status say(Rank to, const pgas::WordHeader& header, std::span<const std::byte> payload) noexcept;
  /// Tells an owner that its segment is not reached from here any more.
  void let_go(std::int32_t owner, std::uint32_t segment) noexcept;
  void hear(std::int32_t from, const pgas::WordHeader& header, std::span<const std::byte> payload) noexcept;
  /// It answers nothing any more.
  [[nodiscard]] bool has_gone(std::int32_t rank) noexcept;
  void look_around() noexcept;

 private:
  /// Null, and the status is the outcome.
  KnownSegment* find_mapped(GlobalPtr<const std::byte> at, std::size_t bytes) noexcept;
  CopyRecord* take(CopyRecord::Task task, GlobalPtr<const std::byte> there, Op& op, CopyOptions& options) noexcept;

  GlobalSpace& space_;
  SpaceService& service_;
  Engine& engine_;
  OwnedSegments owned_{*this};
  Directory directory_{*this};
  Copies copies_{*this};
  ServedCopies served_{*this};
};

/// What stays of the global space between one GlobalSpace of a runtime and the next: others are answered.
class SpaceService final : public Service {
 public:
  explicit SpaceService(Engine& engine);

  [[nodiscard]] SpaceState* state() const noexcept { return state_; }
  void set_state(SpaceState* state) noexcept { state_ = state; }
  [[nodiscard]] Engine& engine() const noexcept { return engine_; }
  Status say(Rank to, const pgas::WordHeader& header, std::span<const std::byte> payload) noexcept;

  void look_around() noexcept override {
    if (state_ != nullptr) state_->look_around();
  }

 private:
  static void on_message(void* service, am::Message& message) noexcept;
  void hear(std::int32_t from, const pgas::WordHeader& header, std::span<const std::byte> payload) noexcept;

  Engine& engine_;
  am::Messenger& messenger_;
  SpaceState* state_ = nullptr;
};

}  // namespace brant
