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
  struct ToRank;
  struct FromRank;

  /// A message that comes.
  struct Coming {
    FromRank* from = nullptr;
    const Part* part = nullptr;
    bool has_come = false;
  };
  /// What is sent to one process, in the order of its channel: the CPU waits for one bell at a time.
  struct ToRank {
    TriggeredExchange* owner = nullptr;
    std::vector<const Part*> parts;
    std::vector<Bell> packed;  ///< By parts.
    std::size_t next = 0;      ///< The part that goes next.
    Op wait;                   ///< For its bell.
  };
  /// What comes from one process: one bell counts it, in its order.
  struct FromRank {
    TriggeredExchange* owner = nullptr;
    std::vector<Coming*> messages;
    std::size_t next = 0;  ///< The first that has not come.
    Bell came;
    Bell passed_on;
  };
  /// One of the two kernels.
  struct Worker {
    PersistentKernel kernel;
    LaunchShape shape;
    Memory messages;  ///< On the device: TriggeredMessage for each.
    TriggeredPlan plan;
    Bell finished;
    Op finish;
    Op end;
  };

  void start();
  [[nodiscard]] unsigned blocks_for(const std::deque<Part>& parts, unsigned at_once) const noexcept;
  void plan(Worker& worker, const std::vector<TriggeredMessage>& table);
  void plan_packer(unsigned at_once);
  void plan_unpacker(unsigned at_once);
  void launch(Worker& worker, const char* name);
  void post_receives();
  void submit(Worker& worker);
  void send_packed(ToRank& to) noexcept;
  void came(Coming& message, const OpResult& outcome) noexcept;
  void settle(Status status) noexcept;
  [[nodiscard]] Completion step_done() noexcept;
  [[nodiscard]] Completion kernel_ended() noexcept;
  Task<void> exchange(std::span<const Buffer> fields) override;
  void give_up() noexcept override;

  const bool together_;  ///< All blocks do one message after another.
  std::unique_ptr<Notifier> notifier_;
  std::unique_ptr<TriggeredKernel> kernel_;
  Worker packer_;
  Worker unpacker_;
  std::map<int, ToRank> to_;  ///< By ranks.
  std::map<int, FromRank> from_;
  std::deque<Coming> coming_;
  Memory neighbours_;  ///< On the device: TriggeredNeighbour for each of `from_`.
  std::uint64_t epoch_ = 0;
  std::size_t steps_ = 0;  ///< Until all messages are posted, have come, and both kernels are done.
  Status failed_ = Status::ok;
  detail::WaitPlace waiter_;
};

}  // namespace brant::halo
