#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "brant/notify/persistent_kernel.h"
#include "core/engine.h"
#include "port/memory.h"

namespace brant {

class BellBoard;
class NotifyTable;

/// A persistent kernel: launched, watched, and ended.
struct ResidentKernel final : private Poller {
 public:
  ResidentKernel(NotifyTable& table, BellBoard& board) noexcept;
  ~ResidentKernel();
  ResidentKernel(const ResidentKernel&) = delete;
  ResidentKernel& operator=(const ResidentKernel&) = delete;

  /// Throws as PersistentKernel::launch.
  void launch(port::Kernel* kernel, const LaunchShape& shape, const PersistentOptions& options,
              std::uint64_t largest_fan_in, std::span<void* const> arguments);
  Status post_started(Op& op) noexcept;
  Status post_ended(Op& op) noexcept;
  Status submit(const notify::Item& item) noexcept;
  [[nodiscard]] std::uint64_t submitted() const noexcept { return submitted_; }
  [[nodiscard]] std::uint64_t done() const noexcept;
  void quit() noexcept;
  void abort() noexcept;
  /// Waits for its end, for 5 s.
  void close() noexcept;

  [[nodiscard]] bool runs() const noexcept { return state_ == State::starting || state_ == State::running; }
  /// It did not end, and uses its memory still.
  [[nodiscard]] bool left() const noexcept { return runs(); }
  /// Of the device.
  [[nodiscard]] double share() const noexcept { return share_; }
  [[nodiscard]] NotifyTable& table() const noexcept { return table_; }
  /// "kernel 'jacobi' runs".
  [[nodiscard]] std::string describe() const;

 private:
  enum class State : std::uint8_t { made, starting, running, ended };
  /// An operation that waits for a moment of the kernel's life.
  struct Watch final : OpOwner {
    explicit Watch(ResidentKernel& kernel) noexcept;
    ResidentKernel& kernel;
  };

  void check(port::Kernel* kernel, const LaunchShape& shape, std::uint64_t largest_fan_in);
  void take_memory();
  unsigned poll() noexcept override;
  [[nodiscard]] bool lets_sleep() const noexcept override { return state_ == State::running && !ended_.observed(); }
  unsigned look_for_start() noexcept;
  unsigned look_for_end() noexcept;
  void on_ended(Status status) noexcept;
  [[nodiscard]] Status how_it_ended() const noexcept;

  NotifyTable& table_;
  BellBoard& board_;
  Engine& engine_;
  PersistentOptions options_;
  State state_ = State::made;
  Status outcome_ = Status::ok;
  Watch started_;
  Watch ended_;
  TimePoint start_until_ = kNever;
  double share_ = 0;
  unsigned looks_ = 0;
  std::uint64_t submitted_ = 0;
  bool quit_ = false;
  port::Stream* stream_ = nullptr;
  std::uint32_t lines_[4] = {};
  std::uint32_t unit_ = 0;
  unsigned taken_ = 0;  ///< Lines, and the unit behind them.
  notify::KernelControl control_;
};

}  // namespace brant
