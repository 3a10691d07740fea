#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "brant/notify/persistent_kernel.h"
#include "models/halo/fused.h"

namespace brant::halo {

/// Modes `stream` and `stacked`: a kernel that packs and one that unpacks stay on the device. A message leaves when the
/// one has rung for it, while it packs the others; the other is told of each that has come. In memory of the host it is
/// mode `fused`.
class TriggeredExchange final : public FusedExchange {
 public:
  TriggeredExchange(Runtime& runtime, const HaloOptions& options);
  ~TriggeredExchange() override;

 private:
  /// A message, with its bell.
  struct Triggered {
    TriggeredExchange* owner = nullptr;
    const Part* part = nullptr;
    Bell bell;
    notify::FanIn fan_in;
    Op packed;
    bool is_packed = false;
  };
  /// One of the two kernels.
  struct Worker {
    PersistentKernel kernel;
    LaunchShape shape;
    std::deque<Triggered> messages;
    Memory table;  ///< On the device: TriggeredMessage for each.
    TriggeredPlan plan;
    Bell finished;
    Bell passed_on;
    Op finish;
    Op end;
  };

  void start();
  void make(Worker& worker, const std::deque<Part>& parts, bool unpacks, unsigned blocks);
  void launch(Worker& worker, const char* name);
  void post_messages();
  void submit(Worker& worker);
  [[nodiscard]] Completion step_done() noexcept;
  [[nodiscard]] Completion kernel_ended() noexcept;
  void packed(Triggered& message, const OpResult& outcome) noexcept;
  void came(Triggered& message, const OpResult& outcome) noexcept;
  void settle(Status status) noexcept;
  Task<void> exchange(std::span<const Buffer> fields) override;
  void give_up() noexcept override;

  std::unique_ptr<Notifier> notifier_;
  std::unique_ptr<TriggeredKernel> kernel_;
  Worker packer_;
  Worker unpacker_;
  std::map<int, std::size_t> next_;  ///< By ranks: the number of the message that goes next.
  std::uint64_t epoch_ = 0;
  std::size_t steps_ = 0;  ///< Bells that have not rung.
  Status failed_ = Status::ok;
  detail::WaitPlace waiter_;
};

}  // namespace brant::halo
