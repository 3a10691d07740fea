#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "bench/coll/caller.h"
#include "brant/core/runtime.h"
#include "brant/core/stream.h"
#include "port/memory.h"

namespace brant::bench {

/// Calls that a stream of this process carries out: queued one behind the other, or captured in a graph that is
/// launched. All processes of the job make one. Throws Error.
class StreamCalls {
 public:
  using QueueOne = std::function<Status(StreamHandle)>;  ///< Queues the call once.
  using Fault = std::function<std::string()>;            ///< Why something failed, as far as that is known.

  StreamCalls(Runtime& runtime, bool in_graph, Fault fault);
  StreamCalls(const StreamCalls&) = delete;
  StreamCalls& operator=(const StreamCalls&) = delete;
  ~StreamCalls();

  [[nodiscard]] port::Stream* stream() const noexcept { return stream_; }
  /// So often, and waits for the stream. What is asked for again is captured once.
  void run(const CollCall& call, std::size_t times, const QueueOne& one);
  /// Waits for the stream first.
  void drop_graph() noexcept;

 private:
  void queue(std::size_t times, const QueueOne& one);
  void capture(const CollCall& call, std::size_t times, const QueueOne& one);
  void require(Status status) const;

  port::Streams* const streams_;
  const bool in_graph_;
  const Fault fault_;
  Stream stream_;
  port::Graph* graph_ = nullptr;
  std::optional<CollCall> captured_;
  std::size_t captured_times_ = 0;
};

}  // namespace brant::bench
