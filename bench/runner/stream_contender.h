#pragma once

#include "bench/runner/contender.h"
#include "bench/runner/graph_samples.h"
#include "bench/runner/path_counts.h"
#include "bench/runner/session.h"
#include "brant/brant.h"

namespace brant::bench {

/// Transfers that a stream triggers, in graphs that run without the CPU (`GraphSamples`).
class StreamContender final : public Contender {
 public:
  /// Collective. Throws not_supported: the two devices cannot map each other's memory.
  StreamContender(Session& session, const Options& options);

  [[nodiscard]] std::string peer() const override { return {}; }
  [[nodiscard]] std::string path() const override { return path_; }
  [[nodiscard]] Trigger trigger() const override { return Trigger::stream; }
  void check(std::size_t bytes, std::size_t times) override;
  void ping_pong(std::size_t bytes, std::span<double> round_trip_us) override;
  void windows(std::size_t bytes, std::size_t window, std::span<double> window_us) override;

 private:
  void run(std::span<double> samples, std::size_t together, const GraphSamples::Record& record);
  void send(std::size_t bytes);
  void recv(std::size_t bytes);
  void window_of(std::size_t bytes, std::size_t window);
  void require(Status status, const char* what, std::size_t bytes) const;

  Session& session_;
  const Options& options_;
  GraphSamples graphs_;
  port::Stream* const stream_;
  StreamChannel channel_;
  const PathCounts counts_;
  std::string path_ = "kernel";
};

}  // namespace brant::bench
