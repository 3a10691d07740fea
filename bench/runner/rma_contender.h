#pragma once

#include <cstdint>

#include "bench/runner/contender.h"
#include "bench/runner/images.h"
#include "bench/runner/path_counts.h"
#include "bench/runner/rma_batch.h"
#include "bench/runner/session.h"
#include "brant/brant.h"

namespace brant::bench {

/// brant's puts, gets or fetch-and-adds: the side that leads makes them in memory that its partner has exposed, and
/// times them from the post until `delivered`; the partner takes no part. So nothing is halved.
class RmaContender final : public Contender {
 public:
  /// Collective. Throws Error.
  RmaContender(Session& session, const Options& options);

  [[nodiscard]] std::string peer() const override { return {}; }
  [[nodiscard]] std::string path() const override { return path_; }
  void check(std::size_t bytes, std::size_t times) override;
  void ping_pong(std::size_t bytes, std::span<double> us) override;
  void windows(std::size_t bytes, std::size_t window, std::span<double> window_us) override;

 private:
  [[nodiscard]] bool puts() const noexcept { return options_.model == Model::put; }
  [[nodiscard]] bool counts() const noexcept { return options_.model == Model::fetch_add; }
  [[nodiscard]] RmaDirection direction() const noexcept { return puts() ? RmaDirection::put : RmaDirection::get; }
  void transfer(Buffer local, std::size_t window);
  Task<void> await_each(Buffer local, std::span<double> us);
  void note_path(const PathCounts::Sends& before, std::size_t bytes);
  void check_counts(std::size_t bytes, std::size_t times);
  void expect_image(Buffer memory, std::uint64_t number);

  Session& session_;
  const Options& options_;
  const PathCounts counts_;
  Images images_;
  Segment segment_;
  RemoteSegment there_;
  RmaBatch batch_;
  std::string path_ = "auto";
  std::uint64_t before_ = 0;  ///< What the latest fetch-and-add was told.
};

/// The same by UCX without brant: `ucp_put_nbx` and a flush, `ucp_get_nbx`, or `ucp_atomic_op_nbx`.
class RawRmaContender final : public Contender {
 public:
  RawRmaContender(Session& session, const Options& options);

  [[nodiscard]] std::string peer() const override { return "ucx"; }
  [[nodiscard]] std::string path() const override { return "ucx"; }
  void ping_pong(std::size_t bytes, std::span<double> us) override { windows(bytes, 1, us); }
  void windows(std::size_t bytes, std::size_t window, std::span<double> window_us) override;

 private:
  Session& session_;
  UcxBaseline& ucx_;
  UcxBaseline::OneSided what_ = UcxBaseline::OneSided::put;
};

}  // namespace brant::bench
