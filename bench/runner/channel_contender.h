#pragma once

#include <cstdint>

#include "bench/runner/contender.h"
#include "bench/runner/path_counts.h"
#include "bench/runner/session.h"
#include "brant/brant.h"

namespace brant::bench {

/// brant's channel: posts and the worker's wait, or coroutines.
class ChannelContender final : public Contender {
 public:
  ChannelContender(Session& session, const Options& options);

  [[nodiscard]] std::string peer() const override { return {}; }
  [[nodiscard]] std::string path() const override { return path_; }
  void check(std::size_t bytes, std::size_t times) override;
  void ping_pong(std::size_t bytes, std::span<double> round_trip_us) override;
  void windows(std::size_t bytes, std::size_t window, std::span<double> window_us) override;

 private:
  /// Waits for `done` as the options ask, asleep in between or not.
  template <typename Predicate>
  void wait(Predicate&& done) noexcept;
  void post_ping_pong(std::size_t bytes, std::span<double> round_trip_us);
  Task<void> await_ping_pong(std::size_t bytes, std::span<double> round_trip_us);
  void transfer_window(bool sends, Buffer memory, std::size_t window);
  [[noreturn]] void fail(const OpResult& result, bool sends, std::size_t bytes) const;

  Session& session_;
  const Options& options_;
  const PathCounts counts_;
  const bool coroutines_;
  const bool spin_;
  Window window_;
  std::string path_ = "auto";
};

}  // namespace brant::bench
