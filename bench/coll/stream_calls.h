#pragma once

#include <cstddef>
#include <optional>

#include "brant/coll/team.h"
#include "brant/core/runtime.h"
#include "brant/core/stream.h"
#include "port/memory.h"

namespace brant::bench {

/// Calls that a stream of this process carries out: queued one behind the other, or captured in a graph that is
/// launched. All members of the team make one. Throws Error.
class StreamCalls {
 public:
  StreamCalls(Runtime& runtime, Team& team, bool in_graph);
  StreamCalls(const StreamCalls&) = delete;
  StreamCalls& operator=(const StreamCalls&) = delete;
  ~StreamCalls();

  /// So often, and waits for the stream. What is asked for again is captured once.
  void run(const Collective& call, std::size_t times);

 private:
  void queue(const Collective& call, std::size_t times);
  void capture(const Collective& call, std::size_t times);
  void drop_graph() noexcept;
  void require(Status status) const;

  port::Streams* const streams_;
  Team& team_;
  const bool in_graph_;
  Stream stream_;
  port::Graph* graph_ = nullptr;
  std::optional<Collective> captured_;
  std::size_t captured_times_ = 0;
};

}  // namespace brant::bench
