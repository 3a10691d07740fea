#pragma once

#include <deque>
#include <string>

#include "brant/notify/notifier.h"
#include "models/halo/direct_way.h"
#include "models/halo/kernels.h"

namespace brant::halo {

/// One kernel for each exchange copies, and agrees with those of the neighbours by bells in device memory. A neighbour
/// that leaves or dies ends the kernel.
class DirectByDevice final : public DirectWay {
 public:
  /// Throws not_supported: a device without kernels, or bells.
  DirectByDevice(Runtime& runtime, const Layout& layout, DirectCopies& plan);
  ~DirectByDevice() override { give_up(); }

  void offer(std::size_t neighbour, DirectOffer& offer) override;
  void accept(std::size_t neighbour, const DirectOffer& offer) override;
  void bind() override;
  void require_ready() const override;
  Task<void> exchange() override;
  void give_up() noexcept override;

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
    Op watch;  ///< Of `gone`.
    Status lost = Status::ok;
  };

  void watch(Pair& pair) noexcept;
  void on_gone(Pair& pair, Status status) noexcept;
  [[nodiscard]] bool is_gone(const Pair& pair, std::uint64_t epoch) const noexcept;
  void abort() noexcept;
  [[noreturn]] void throw_gone(const Pair& pair) const;
  [[noreturn]] void throw_unfinished() const;
  [[nodiscard]] std::string describe(const Pair& pair) const;

  Runtime& runtime_;
  const Layout& layout_;
  DirectCopies& plan_;
  DirectKernel kernel_;
  LaunchShape shape_;
  Notifier notifier_;
  std::deque<Pair> pairs_;  ///< By neighbours.
  Memory neighbours_;       ///< On the device: DirectNeighbour for each.
  Memory control_memory_;
  notify::KernelControl control_;
  DirectPlan on_device_;
  Stream stream_;
  std::uint64_t epoch_ = 0;  ///< Exchanges that have begun.
  bool running_ = false;
  bool given_up_ = false;
};

}  // namespace brant::halo
