#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>

#include "brant/base/intrusive_list.h"
#include "models/mpi/rank_threads.h"
#include "models/mpi/ranks/rank_stack.h"

namespace brant::mpi {

/// The user-level thread of one rank. It is entered from the scheduler's stack and leaves to it.
class RankFiber {
 public:
  /// `body` runs on a stack of its own; when it returns the fiber has ended.
  RankFiber(int slot, std::size_t stack_bytes, void (*body)(RankFiber&, void*) noexcept, void* context);
  ~RankFiber();
  RankFiber(const RankFiber&) = delete;
  RankFiber& operator=(const RankFiber&) = delete;

  /// From the scheduler's stack: runs it until it leaves or ends.
  void enter() noexcept;
  /// On its own stack.
  void leave() noexcept;

  [[nodiscard]] const RankStack& stack() const noexcept { return stack_; }

  const int slot;
  RankThreads::Done done = nullptr;  ///< What it waits for.
  void* context = nullptr;
  bool awaits_notice = false;
  ListHook<RankFiber> hook;  ///< Among those that are ready.

 private:
  RankStack stack_;
  boost::context::fiber here_;       ///< While it stands still.
  boost::context::fiber scheduler_;  ///< While it runs.
  int errno_ = 0;                    ///< Of the rank, while it stands still.
  // What sanitizers have to know of stacks.
  void* const shadow_;
  void* other_shadow_ = nullptr;
  void* fake_stack_ = nullptr;
  const void* other_bottom_ = nullptr;
  std::size_t other_bytes_ = 0;
};

}  // namespace brant::mpi
