#pragma once

#include "bench/nccl/nccl_member.h"
#include "bench/runner/contender.h"
#include "bench/runner/graph_samples.h"

namespace brant::bench {

/// NCCL's send and receive, in the same processes and on the same GPU memory. With trigger host the CPU sees the end of
/// each receive before it goes on; with trigger stream all round trips are in one graph, as brant's are.
class NcclContender final : public Contender {
 public:
  /// Collective. Throws Error: no NCCL, the two sides do not meet.
  NcclContender(Session& session, const Options& options);

  [[nodiscard]] std::string peer() const override { return "nccl"; }
  [[nodiscard]] std::string peer_version() const override { return nccl::library().version; }
  [[nodiscard]] std::string path() const override { return "nccl"; }
  [[nodiscard]] Trigger trigger() const override { return trigger_; }
  void ping_pong(std::size_t bytes, std::span<double> round_trip_us) override;
  void windows(std::size_t bytes, std::size_t window, std::span<double> window_us) override;

 private:
  void window_of(std::size_t bytes, std::size_t window);
  void send(std::size_t bytes) { nccl_.send(session_.source(bytes).data, bytes, other_); }
  void recv(std::size_t bytes) { nccl_.recv(session_.landing(bytes).data, bytes, other_); }

  Session& session_;
  const Trigger trigger_;
  const int other_;
  GraphSamples graphs_;
  nccl::Member nccl_;  ///< Gone before the stream.
};

}  // namespace brant::bench
