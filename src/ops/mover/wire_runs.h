#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/object_pool.h"
#include "brant/base/intrusive_list.h"
#include "core/engine.h"
#include "ops/mover/move.h"
#include "ops/mover/shape_cursor.h"

namespace brant {

/// Carries bytes between a packed buffer and memory of a peer where they lie in several runs, over the network: a put
/// or a get for each run, some at a time. The worker's thread.
class WireRuns final : private Poller {
 public:
  static constexpr unsigned kAtOnce = 16;          ///< Puts or gets under way, of one step of a move.
  static constexpr std::size_t kRunsATurn = 256;   ///< Posted between two looks at everything else, of all moves.
  static constexpr std::size_t kStepsMost = 1024;  ///< Under way, of all moves.
  using Done = void (*)(void* self, Move& move, Status status) noexcept;

  /// `done` tells of a step that took time, from progress.
  WireRuns(Engine& engine, Done done, void* self) noexcept : engine_(engine), done_(done), self_(self) {}
  ~WireRuns() { engine_.pollers().detach(*this); }
  WireRuns(const WireRuns&) = delete;
  WireRuns& operator=(const WireRuns&) = delete;

  /// One end is over the network and has a shape; the other one is a run of host memory. in_progress; else nothing was
  /// started: limit_reached, no_memory.
  Status start(Move& move, const StepEnd& to, const StepEnd& from, std::size_t bytes) noexcept;

 private:
  struct Step;
  struct Run : port::WireOp {
    Step* step = nullptr;
    bool is_under_way = false;
  };
  struct Step {
    Step(WireRuns& owner_in, Move& move_in, const StepEnd& there_in, std::byte* packed_in, bool is_put_in) noexcept
        : owner(owner_in),
          move(move_in),
          there(there_in.place.address),
          cursor(there_in.shape, there_in.position, there_in.mark),
          packed(packed_in),
          is_put(is_put_in) {}

    WireRuns& owner;
    Move& move;
    const std::uint64_t there;
    ShapeCursor cursor;
    std::byte* packed;
    const bool is_put;
    std::size_t left = 0;  ///< Bytes that are not posted yet.
    unsigned under_way = 0;
    std::uint64_t turn = 0;  ///< Its latest.
    /// Nothing of it can be done before a run has ended.
    [[nodiscard]] bool waits() const noexcept {
      return under_way == kAtOnce || (under_way != 0 && (left == 0 || status != Status::ok));
    }
    Status status = Status::ok;
    ListHook<Step> hook;
    std::array<Run, kAtOnce> runs;
  };

  void post_some(Step& step, std::size_t& room) noexcept;
  Status post(Step& step, Run& run, std::size_t bytes) noexcept;
  static void on_run(port::WireOp& op) noexcept;
  unsigned poll() noexcept override;
  [[nodiscard]] bool lets_sleep() const noexcept override { return waits_for_network_; }

  Engine& engine_;
  const Done done_;
  void* const self_;
  ObjectPool<Step> steps_{kStepsMost};
  IntrusiveList<Step, &Step::hook> all_;
  std::uint64_t turn_ = 0;
  bool waits_for_network_ = false;  ///< All steps do, which wakes the process.
};

}  // namespace brant
