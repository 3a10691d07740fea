#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <vector>

#include "brant/notify/persistent_kernel.h"
#include "models/halo/fused.h"

namespace brant::halo {

/// Modes `stream` and `stacked`: a kernel that packs and one that unpacks stay on the device. A message leaves when the
/// one has rung for it, while it packs the others; the other is told of each that has come. Or one kernel of the
/// program, a guest, does both, and the CPU moves the messages beside it. In memory of the host it is mode `fused`.
class TriggeredExchange final : public FusedExchange {
 public:
  TriggeredExchange(Runtime& runtime, const HaloOptions& options);
  ~TriggeredExchange() override;

  [[nodiscard]] MessagePlan device_messages(unsigned blocks) override;
  void require_device() const override;

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
    Memory messages;  ///< On the device: TriggeredMessage for each.
    TriggeredPlan plan;
    Bell finished;
    Op finish;
    Op end;
  };

  // Planned.
  void make_bells();
  void make_bells_of_sends();
  void make_bells_of_receives();
  [[nodiscard]] TriggeredPlan plan_packs(Memory& messages, unsigned blocks);
  [[nodiscard]] TriggeredPlan plan_unpacks(Memory& messages);
  [[nodiscard]] TriggeredPlan plan_of(Memory& messages, const std::vector<TriggeredMessage>& table);

  // By the kernels of the library.
  void start();
  [[nodiscard]] unsigned blocks_for(const std::deque<Part>& parts, unsigned at_once) const noexcept;
  void launch(Worker& worker, unsigned blocks, const char* name);
  void submit(Worker& worker);

  // By a guest.
  Task<void> bind_to(std::span<const Buffer> fields) override;
  Task<void> accompany_kernel(PersistentKernel& kernel, std::uint64_t times, Task<bool> work) override;
  Task<void> move_messages(std::uint64_t times);
  Task<void> move_messages_once();
  Task<void> follow(Task<bool> work);
  [[noreturn]] void throw_unfinished() const;

  // In either case.
  Task<void> put_bases();
  void post_messages();
  void post_receives();
  void send_packed(ToRank& to) noexcept;
  void came(Coming& message, const OpResult& outcome) noexcept;
  void settle(Status status) noexcept;
  [[nodiscard]] Completion step_done() noexcept;
  [[nodiscard]] Completion kernel_ended() noexcept;
  Task<void> exchange(std::span<const Buffer> fields) override;
  void give_up() noexcept override;

  [[nodiscard]] const char* mode_name() const noexcept;

  const bool together_;  ///< All blocks do one message after another.
  std::unique_ptr<Notifier> notifier_;
  std::unique_ptr<TriggeredKernel> kernel_;
  std::vector<TriggeredMessage> packs_;  ///< With fan-ins of no blocks yet.
  std::vector<TriggeredMessage> unpacks_;
  Worker packer_;
  Worker unpacker_;
  std::map<int, ToRank> to_;  ///< By ranks.
  std::map<int, FromRank> from_;
  std::deque<Coming> coming_;
  Memory neighbours_;  ///< On the device: TriggeredNeighbour for each of `from_`.
  std::uint64_t epoch_ = 0;
  std::size_t steps_ = 0;  ///< Until all messages are posted, have come, and the kernels are done.
  Status failed_ = Status::ok;
  detail::WaitPlace waiter_;

  // Of a guest.
  Memory guest_packs_;  ///< On the device, as those of a Worker.
  Memory guest_unpacks_;
  Bell taken_;
  Bell sent_;
  Op take_;
  PersistentKernel* guest_ = nullptr;  ///< While it exchanges.
  std::exception_ptr guests_failure_;  ///< Of the work beside which it exchanges.
};

}  // namespace brant::halo
