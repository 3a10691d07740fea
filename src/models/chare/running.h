#pragma once

#include "models/chare/answers.h"
#include "models/chare/arrivals.h"
#include "models/chare/calls.h"
#include "models/chare/making.h"

namespace brant::detail {

/// Takes messages from the queue and has each of them run by the part whose work it is.
class Running {
 public:
  Running(const ProgramContext& context, Activity& activity, Messages& messages, ReadyQueue& queue, Ending& ending,
          Answers& answers, Arrivals& arrivals, Making& making, Calls& calls, Moving& moving) noexcept;

  /// At most `limit` messages, and no longer than a `BatchTime`. How many.
  unsigned run_ready(unsigned limit);
  void run(am::Message& message) noexcept;

 private:
  const ProgramContext& context_;
  Activity& activity_;
  Messages& messages_;
  ReadyQueue& queue_;
  Ending& ending_;
  Answers& answers_;
  Arrivals& arrivals_;
  Making& making_;
  Calls& calls_;
  Moving& moving_;
};

}  // namespace brant::detail
