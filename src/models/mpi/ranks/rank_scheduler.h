#pragma once

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "models/mpi/rank_threads.h"
#include "models/mpi/ranks/rank_fiber.h"
#include "models/mpi/ranks/rank_program.h"

namespace brant::mpi {

/// Lets the ranks of a process take turns on the calling thread: in the order in which they became ready, each until it
/// waits, yields or ends.
class RankScheduler final : public RankThreads {
 public:
  /// `stack_bytes` of address space for each rank. Throws std::system_error where there is none.
  RankScheduler(RankProgram& program, int count, std::size_t stack_bytes);
  ~RankScheduler() override;

  /// Runs all ranks until they have ended. An exit code: 0, or that of the first rank which ended with another one; the
  /// others do not go on then.
  int run() noexcept;
  /// False: the calling code runs on no rank's stack.
  [[nodiscard]] bool in_rank() const noexcept { return running_ != nullptr; }
  /// Of the rank that the calling code runs on.
  [[nodiscard]] const RankStack& running_stack() const noexcept { return running_->stack(); }

  [[nodiscard]] int count() const noexcept override { return static_cast<int>(fibers_.size()); }
  [[nodiscard]] int current() const noexcept override;
  [[nodiscard]] int caller() const noexcept override;
  void wait(Done done, void* context) noexcept override;
  void wait_for_notice(Done done, void* context) noexcept override;
  void notice(int slot) noexcept override;
  [[nodiscard]] bool moves(const void* address) const noexcept override { return program_.moves(address); }
  void yield() noexcept override;
  void attach(Worker* worker) noexcept override;

 private:
  void run_ready() noexcept;
  void enter(RankFiber& fiber) noexcept;
  void leave() noexcept;
  void stand_still(Done done, void* context) noexcept;
  void make_ready(RankFiber& fiber) noexcept;
  bool ask(RankFiber& fiber) noexcept;
  /// Those whose wait is over are ready. True: somebody is.
  bool wake() noexcept;
  static void body(RankFiber& fiber, void* self) noexcept;
  static std::size_t let_others_run(void* self) noexcept;

  const std::thread::id thread_ = std::this_thread::get_id();
  RankProgram& program_;
  std::vector<std::unique_ptr<RankFiber>> fibers_;
  IntrusiveList<RankFiber, &RankFiber::hook> ready_;
  std::size_t ready_count_ = 0;
  std::vector<RankFiber*> waiting_;  ///< Those that are asked after each round.
  RankFiber* running_ = nullptr;
  RankFiber* asked_ = nullptr;  ///< Whether its wait is over.
  Worker* worker_ = nullptr;
  std::size_t ended_ = 0;
  unsigned turns_ = 0;       ///< Since the network was looked at.
  std::size_t polling_ = 0;  ///< Of the ready ones: those that only look whether something has come.
  int exit_code_ = 0;
};

}  // namespace brant::mpi
