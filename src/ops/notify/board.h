#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/object_pool.h"
#include "brant/core/timer.h"
#include "brant/notify/notifier.h"
#include "core/engine.h"
#include "ops/notify/armed_lines.h"
#include "ops/notify/bell_words.h"

namespace brant {

class BellBoard;
class NotifyTable;

/// Somebody waits until a bell reaches an epoch.
struct BellWait final : OpOwner {
  BellWait(BellBoard& board_in, std::uint32_t slot_in, std::uint64_t epoch_in, TimePoint deadline_in) noexcept;

  BellBoard& board;
  const std::uint32_t slot;
  const std::uint64_t epoch;
  const TimePoint deadline;
  ListHook<BellWait> hook;
};

/// The bells of one Notifier. Slots below `options.bells` are those that the device rings and the host sees, 16 in a
/// line; every other one has a line of the host, or a unit of the device's memory, to itself.
class BellBoard final : private Poller, private Timer {
 public:
  /// Throws as Notifier does.
  BellBoard(NotifyTable& table, const NotifierOptions& options);
  ~BellBoard();
  BellBoard(const BellBoard&) = delete;
  BellBoard& operator=(const BellBoard&) = delete;

  /// Throws as Notifier::make.
  std::uint32_t make(const BellOptions& options);
  void close(std::uint32_t slot) noexcept;
  notify::FanIn fan_in(std::uint32_t arrivals);
  /// No bell is made any more, and what waits ends.
  void close_all() noexcept;
  [[nodiscard]] bool unused() const noexcept { return closed_ && open_ == 0; }

  [[nodiscard]] const BellOptions& options_of(std::uint32_t slot) const noexcept { return slots_[slot].options; }
  /// As the device reaches it.
  [[nodiscard]] std::uint64_t* word_of(std::uint32_t slot) const noexcept;
  [[nodiscard]] bool host_sees_word(std::uint32_t slot) const noexcept { return !slots_[slot].in_device; }
  [[nodiscard]] std::uint64_t epoch_of(std::uint32_t slot) const noexcept;
  Status ring(std::uint32_t slot, std::uint64_t epoch) noexcept;
  Status post_when(Op& op, std::uint32_t slot, std::uint64_t epoch, std::chrono::nanoseconds patience) noexcept;
  Status at_stream(std::uint32_t slot, port::StreamWord::Act act, std::uint64_t epoch, port::Stream* stream) noexcept;

  // For persistent kernels: a line of the host, and a unit of the device, both 0. limit_reached.
  Result<std::uint32_t> take_line() noexcept;
  void give_line(std::uint32_t line) noexcept { free_others_.push_back(line); }
  [[nodiscard]] std::uint64_t* line(std::uint32_t line) const noexcept { return words_.line(line_of(line)); }
  Result<std::uint32_t> take_unit() noexcept;
  void give_unit(std::uint32_t unit) noexcept { free_units_.push_back(unit); }
  [[nodiscard]] std::uint64_t* unit(std::uint32_t unit) const noexcept { return words_.unit(unit); }
  /// One more persistent kernel uses it, or one less (-1).
  void note_kernel(int change) noexcept;

  [[nodiscard]] NotifyTable& table() const noexcept { return table_; }
  [[nodiscard]] Engine& engine() const noexcept;
  [[nodiscard]] std::size_t waits() const noexcept { return pool_.lent(); }
  /// "bell 7 to reach epoch 3 (it is 2)", for whoever waits; empty: nobody does.
  [[nodiscard]] std::string describe_waits() const;

 private:
  friend struct BellWait;
  using Waits = IntrusiveList<BellWait, &BellWait::hook>;
  struct Slot final : PeerOp {
    BellOptions options;
    Waits waits;
    BellBoard* board = nullptr;
    Peer* peer = nullptr;
    std::uint32_t unit = 0;
    bool in_device = false;
    std::uint64_t* window = nullptr;  ///< Where the CPU writes a word that is in the device.
    std::uint64_t rung = 0;           ///< By the CPU; the window is not read.
    bool open = false;
  };

  void check(const BellOptions& options) const;
  void open_word(std::uint32_t slot);
  [[nodiscard]] std::size_t line_of(std::uint32_t other) const noexcept { return bell_lines_ + other; }
  [[nodiscard]] std::size_t place_of(std::uint32_t slot) const noexcept;
  [[nodiscard]] std::uint32_t slot_at(std::size_t word) const noexcept;
  unsigned poll() noexcept override;
  void rung(std::uint32_t slot) noexcept;
  void arm(std::uint32_t slot) noexcept;
  void end(BellWait& wait, Status status) noexcept;
  void withdraw(BellWait& wait) noexcept;
  void end_all(std::uint32_t slot, Status status) noexcept;
  void on_time() noexcept;
  void tell_late(const BellWait& wait) const noexcept;

  NotifyTable& table_;
  const NotifierOptions options_;
  const std::size_t bell_lines_;
  BellWords words_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_bells_;
  std::vector<std::uint32_t> free_others_;
  std::vector<std::uint32_t> free_units_;
  ArmedLines armed_;
  ObjectPool<BellWait> pool_;
  std::size_t open_ = 0;  ///< Bells and kernels.
  bool closed_ = false;
};

}  // namespace brant
