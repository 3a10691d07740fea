#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "bench/runner/session.h"
#include "port/memory.h"

namespace brant::bench {

inline constexpr std::size_t kRoundTripsTogether = 100;  ///< In one graph, so that launching it does not count.
inline constexpr std::size_t kWindowsTogether = 4;

/// Samples of what a stream does without the CPU: many are captured into one graph, which runs from its launch until
/// the CPU has seen its end. A sample is the mean of its graph.
class GraphSamples {
 public:
  using Record = std::function<void(std::size_t times)>;  ///< Queues so many samples on the stream.

  /// Makes the stream. Throws Error: the memory of this session is of no device.
  explicit GraphSamples(Session& session);
  GraphSamples(const GraphSamples&) = delete;
  GraphSamples& operator=(const GraphSamples&) = delete;
  ~GraphSamples();

  [[nodiscard]] port::Streams& streams() noexcept { return streams_; }
  [[nodiscard]] port::Stream* stream() const noexcept { return stream_; }

  /// Fills `samples`, `together` of them with each graph. Collective. Throws Error naming the rank and what failed.
  void run(std::span<double> samples, std::size_t together, const Record& record);

 private:
  double run_graph(std::size_t times, const Record& record);
  void require(Status status, const char* what) const;

  Session& session_;
  port::Streams& streams_;
  port::Stream* stream_ = nullptr;
};

}  // namespace brant::bench
