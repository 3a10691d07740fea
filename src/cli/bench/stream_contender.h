#pragma once

#include <functional>

#include "brant/brant.h"
#include "cli/bench/contender.h"
#include "cli/bench/path_counts.h"
#include "cli/bench/session.h"

namespace brant::cli::bench {

/// Transfers that a stream triggers: many round trips are captured into one graph, which runs without the CPU. A sample
/// is the mean of a graph, from its launch until the CPU has seen its end.
class StreamContender final : public Contender {
 public:
  /// Collective. Throws not_supported: the two devices cannot map each other's memory.
  StreamContender(Session& session, const Options& options);
  ~StreamContender() override;

  [[nodiscard]] std::string peer() const override { return {}; }
  [[nodiscard]] std::string path() const override { return path_; }
  void check(std::size_t bytes, std::size_t times) override;
  void ping_pong(std::size_t bytes, std::span<double> round_trip_us) override;
  void windows(std::size_t bytes, std::size_t window, std::span<double> window_us) override;

 private:
  using Record = std::function<void(std::size_t times)>;  ///< Queues so many samples.

  void run(std::span<double> samples, std::size_t together, const Record& record);
  double run_graph(std::size_t times, const Record& record);
  void send(std::size_t bytes);
  void recv(std::size_t bytes);
  void window_of(std::size_t bytes, std::size_t window);
  void require(Status status, const char* what, std::size_t bytes) const;

  Session& session_;
  const Options& options_;
  port::Streams& streams_;
  const PathCounts counts_;
  port::Stream* stream_ = nullptr;
  std::string path_ = "kernel";
};

}  // namespace brant::cli::bench
