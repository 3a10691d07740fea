#pragma once

#include <array>
#include <optional>

#include "core/engine.h"
#include "ops/courier/courier.h"
#include "ops/mover/copy_kernels.h"
#include "ops/mover/copy_lane.h"

namespace brant {

/// Copies between device memory of this process and what it has mapped of its peers. Copies may overtake one another.
/// The mover's. When it goes, it waits for its last copies.
///
/// Small ones go to the courier while it is there; it is called once such copies follow each other about as closely as
/// it stays for the next one (else a call, which costs as much as a copy without it, would be for nothing), and leaves
/// by itself. The others wait for the next progress, and what was asked for until then goes together: a single copy and
/// large ones by the copy engine, several small ones by one kernel, since every call of the driver costs some
/// microseconds.
class DeviceCopier final : private Poller {
 public:
  DeviceCopier(Engine& engine, CopyKernels& kernels, CopyEnd done) noexcept;
  ~DeviceCopier() { engine_.pollers().detach(*this); }
  DeviceCopier(const DeviceCopier&) = delete;
  DeviceCopier& operator=(const DeviceCopier&) = delete;

  /// Loads its kernels, unless that was done: call it before kernels run that end late.
  void open() noexcept;
  /// `done` runs from a later progress, with the outcome; `copy.path` then says what carried it: the courier only
  /// if that was wanted. Never waits. Returns the path as far as it is known now.
  Path start(void* to, const void* from, std::size_t bytes, DeviceCopy& copy, Path wanted) noexcept;
  /// Largest copy that the courier takes; 0 without one.
  [[nodiscard]] std::size_t courier_bytes() noexcept {
    open();
    return courier_->bytes_max();
  }
  /// A copy that goes alone is followed by a write of its word on the same stream (BRANT_COPY_SIGNAL=1, and the device
  /// can): then the receiver hears of it before this CPU does.
  [[nodiscard]] bool sets_words() noexcept {
    open();
    return sets_words_;
  }
  /// Whether a courier has copies of this process under way.
  [[nodiscard]] bool courier_carries() const noexcept { return !carried_.empty(); }

 private:
  static constexpr unsigned kLanes = 4;  ///< Streams, which the copy engines work on side by side.

  /// Orders that no courier has taken for so long go another way: a kernel of the user may fill the device.
  static constexpr auto kCourierPatience = std::chrono::microseconds(100);
  /// So many copies at once wait for a courier that was called, for so long: it carries each in a fraction of the time
  /// that the calls of the driver would take.
  static constexpr unsigned kWindow = 4;
  static constexpr auto kCallPatience = std::chrono::microseconds(30);
  /// A large copy is the courier's while that has little else to do: then it comes soonest. Windows of them go faster
  /// by the batches of the others.
  static constexpr std::size_t kLargeBytes = std::size_t{256} << 10;
  static constexpr std::size_t kCarriedMost = std::size_t{1} << 20;
  /// So much keeps the link between two devices busy for longer than a call of the driver takes: copies of a window
  /// then start while the rest of it is asked for.
  static constexpr std::size_t kIssueBytes = std::size_t{4} << 20;

  unsigned poll() noexcept override;
  bool give_to_courier(DeviceCopy& copy) noexcept;
  bool post(DeviceCopy& copy) noexcept;
  static bool too_much(const DeviceCopy& copy, std::size_t under_way) noexcept {
    return copy.bytes >= kLargeBytes && under_way != 0 && under_way + copy.bytes > kCarriedMost;
  }
  void call_courier() noexcept;
  void hand_over() noexcept;
  [[nodiscard]] bool worth_waiting() const noexcept;
  unsigned poll_courier() noexcept;
  unsigned poll_lanes() noexcept;
  DeviceCopy* next_carried() noexcept;
  unsigned end_carried(std::uint64_t up_to, Status status) noexcept;
  unsigned take_back() noexcept;
  void issue() noexcept;
  void issue_alone(DeviceCopy& copy) noexcept;
  Status queue_alone(DeviceCopy& copy, port::Stream* stream) noexcept;
  void issue_together(DeviceCopies& batch) noexcept;
  CopyLane& next_lane() noexcept { return lanes_[next_lane_++ % kLanes]; }
  /// Hands the copies to the lane; if `issued` or the lane failed, the next poll ends them.
  void close(CopyLane& lane, DeviceCopies& batch, Status issued) noexcept;
  [[nodiscard]] bool idle() const noexcept;

  Engine& engine_;
  const CopyEnd done_;
  CopyKernels& kernels_;
  EventPool events_;
  std::array<CopyLane, kLanes> lanes_;
  unsigned next_lane_ = 0;
  unsigned polled_lane_ = 0;
  DeviceCopies asked_;
  std::size_t asked_bytes_ = 0;
  FailedCopies failed_;
  bool polling_ = false;
  std::optional<Courier> courier_;  ///< From `open` on.
  bool sets_words_ = false;
  DeviceCopies carried_;  ///< By the courier, oldest first.
  std::size_t carried_bytes_ = 0;
  std::uint64_t carried_ended_ = 0;
  TimePoint last_small_{};
  TimePoint unclaimed_since_{};   ///< Orders wait for a courier that is not there; else zero.
  unsigned missed_ = 0;           ///< Of those asked for, the courier would have taken so many, had it been there.
  std::size_t call_courier_ = 0;  ///< For so many bytes together.
  TimePoint called_at_{};
};

}  // namespace brant
