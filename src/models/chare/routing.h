#pragma once

#include "models/chare/following.h"

namespace brant::detail {

/// Finds out where a message of this process goes: into the queue, to another rank, or down a tree.
class Routing {
 public:
  Routing(Activity& activity, Collections& collections, Messages& messages, Sending& sending, ReadyQueue& queue,
          DataLandings& landings, Latecomers& latecomers, Following& following, Answers& answers,
          const Ending& ending) noexcept;

  /// A message that was packed here. It is gone if this throws.
  void post(am::Message& message);
  /// One that was counted already.
  void route(am::Message& message);

 private:
  Activity& activity_;
  Collections& collections_;
  Messages& messages_;
  Sending& sending_;
  ReadyQueue& queue_;
  DataLandings& landings_;
  Latecomers& latecomers_;
  Following& following_;
  Answers& answers_;
  const Ending& ending_;
};

}  // namespace brant::detail
