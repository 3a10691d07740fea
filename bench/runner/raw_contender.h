#pragma once

#include <algorithm>

#include "bench/runner/contender.h"
#include "bench/runner/session.h"

namespace brant::bench {

/// UCX without brant, in the same processes and on the same memory.
class RawContender final : public Contender {
 public:
  explicit RawContender(Session& session) : session_(session), ucx_(session.open_rival()) {}

  [[nodiscard]] std::string peer() const override { return "ucx"; }
  [[nodiscard]] std::string path() const override { return "ucx"; }
  void ping_pong(std::size_t bytes, std::span<double> round_trip_us) override {
    ucx_.ping_pong(session_.leads(), session_.source(bytes).data, session_.landing(bytes).data, bytes, round_trip_us);
  }
  void windows(std::size_t bytes, std::size_t window, std::span<double> window_us) override {
    ucx_.windows(session_.leads(), session_.source(std::max<std::size_t>(bytes, 4)).data, bytes, window, window_us);
  }

 private:
  Session& session_;
  UcxBaseline& ucx_;
};

}  // namespace brant::bench
