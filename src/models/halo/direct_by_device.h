#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "brant/notify/notifier.h"
#include "models/halo/direct_way.h"
#include "models/halo/kernels.h"
#include "models/halo/line_table.h"

namespace brant::halo {

/// Kernels copy, and agree with those of the neighbours by bells in device memory. A neighbour that leaves or dies ends
/// the kernel. What is the same whether one is launched for each exchange or stays.
class DirectByDevice : public DirectWay {
 public:
  void offer(std::size_t neighbour, DirectOffer& offer) override;
  void accept(std::size_t neighbour, const DirectOffer& offer) override;
  void bind() override;
  void require_ready() const override;
  Task<void> exchange(std::uint64_t times) final;
  [[nodiscard]] DirectPlan device(unsigned blocks) final;
  Task<void> accompany(PersistentKernel& kernel, std::uint64_t times, Task<bool> work) final;
  void give_up() noexcept final;

 protected:
  /// Throws not_supported: a device without kernels, or bells. `shape`: of the kernel.
  DirectByDevice(Runtime& runtime, const Layout& layout, DirectCopies& plan, const LaunchShape& shape);

  /// Has the kernel do so many exchanges, and waits for their end. True: they were done.
  virtual Task<bool> run_kernel(std::uint64_t first, std::uint64_t times) = 0;
  /// Waits in the kernel end at once.
  virtual void abort() noexcept = 0;
  /// No kernel touches any memory when this returns.
  virtual void stop() noexcept = 0;

  Runtime& runtime_;
  const Layout& layout_;
  DirectCopies& plan_;
  LaunchShape shape_;
  Notifier notifier_;
  DirectPlan on_device_;
  Stream stream_;

 private:
  /// What is agreed upon with one neighbour.
  struct Pair {
    DirectByDevice* owner = nullptr;
    std::size_t number = 0;
    Bell ready;
    Bell arrived;
    Bell gone;  ///< It has left, with one exchange less than the epoch: then it is in nobody's way.
    PeerBell tell_ready;
    PeerBell tell_arrived;
    PeerBell tell_gone;
    notify::FanIn fan_in;
    Word strips = 0;      ///< To it; 0: all blocks copy together.
    Word arrives_in = 1;  ///< Parts of `arrived`.
    Op watch;             ///< Of `gone`.
    Status lost = Status::ok;
  };

  /// For a kernel of so many blocks.
  void put_neighbours(Memory& to, Word blocks);
  /// Stops, and says so to the neighbours.
  void quit() noexcept;
  void tell_gone() noexcept;
  /// The same where nothing is under way, and what comes next is refused: then this process is in nobody's way either.
  void tell_if_refused() noexcept;
  /// Quits, and throws why when no neighbour writes into memory of this process any more, or one has not said so in
  /// time.
  Task<void> fail();
  Task<void> neighbours_gone();
  void watch(Pair& pair) noexcept;
  void on_gone(Pair& pair, Status status) noexcept;
  [[nodiscard]] bool is_gone(const Pair& pair, std::uint64_t epoch) const noexcept;
  [[noreturn]] void throw_gone(const Pair& pair, std::uint64_t epoch) const;
  [[noreturn]] void throw_unfinished() const;
  void put_lines();
  /// All of so many parts.
  [[nodiscard]] bool has_rung(const Bell& bell, Word parts, std::uint64_t epoch) const;
  [[nodiscard]] bool has_begun(const Pair& pair) const;
  [[nodiscard]] bool has_written(const Pair& pair) const;
  [[nodiscard]] std::string describe(const Pair& pair) const;

  std::deque<Pair> pairs_;  ///< By neighbours.
  Memory neighbours_;       ///< On the device: DirectNeighbour for each that gets no lines.
  Memory guests_;           ///< The same for a kernel of the program.
  LineTable lines_;
  std::uint64_t first_ = 0;           ///< Of the run that has begun.
  std::uint64_t epoch_ = 0;           ///< Exchanges that have begun,
  std::uint64_t done_ = 0;            ///< and that have been done.
  const Pair* first_gone_ = nullptr;  ///< Which has ended what was under way: others go since it has.
  bool given_up_ = false;
  PersistentKernel* guest_ = nullptr;  ///< The program's, while that exchanges.
};

/// The most chunks that a kernel of the plan copies at a time: for some neighbour, or within the process.
Word most_chunks(const DirectCopies& plan) noexcept;

}  // namespace brant::halo
