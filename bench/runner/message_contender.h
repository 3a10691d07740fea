#pragma once

#include <cstdint>
#include <memory>

#include "bench/runner/contender.h"
#include "bench/runner/path_counts.h"
#include "bench/runner/session.h"
#include "brant/chare.h"

namespace brant::bench {

class MessageContender;

/// One per process: what the messages of the benchmark invoke.
class Pinger final : public Chare<Pinger, Index<1>> {
 public:
  Pinger() noexcept;

  /// A message that is answered, or the answer.
  void bounce(std::span<const std::byte> payload);
  /// One of a window, of which only the last is answered.
  void take(std::span<const std::byte> payload);

  /// The same with data apart from the message, which lands where the session says.
  void bounce_data(DeviceData data);
  void take_data(DeviceData data);
  Buffer post(Post<&Pinger::bounce_data>, const DeviceMeta& meta);
  Buffer post(Post<&Pinger::take_data>, const DeviceMeta& meta);
};

/// brant's chares: entry methods that invoke each other. A payload in host memory is an ordinary argument; one in any
/// other memory travels as data with a post entry.
class MessageContender final : public Contender {
 public:
  /// Collective. Throws Error.
  MessageContender(Session& session, const Options& options);
  ~MessageContender() override;

  [[nodiscard]] std::string peer() const override { return {}; }
  [[nodiscard]] std::string path() const override { return path_; }
  void check(std::size_t bytes, std::size_t times) override;
  void ping_pong(std::size_t bytes, std::span<double> round_trip_us) override;
  void windows(std::size_t bytes, std::size_t window, std::span<double> window_us) override;

  // For the chare of this process.
  void born(Pinger& pinger) noexcept { pinger_ = &pinger; }
  void on_bounce(std::span<const std::byte> payload);
  void on_take();
  void on_bounce_data(Buffer landed);
  [[nodiscard]] Buffer landing(std::size_t bytes) const { return session_.landing(bytes); }

 private:
  template <typename Begin>
  void run_batch(std::size_t bytes, std::span<double> samples, Begin&& begin);
  template <typename Done>
  void run_until(Done&& done);
  void send_bounce();
  void answer();
  void look_at(std::span<const std::byte> payload);

  Session& session_;
  const MemoryKind memory_;
  const PathCounts counts_;
  Chares chares_;
  Pinger* pinger_ = nullptr;
  Element<Pinger> partner_;
  std::string path_ = "auto";

  // The batch that runs.
  Buffer source_;
  std::vector<std::byte> image_;  ///< What is sent in a pass that checks.
  bool checks_ = false;
  std::uint64_t number_ = 0;  ///< Of the message, for its pattern.
  std::size_t left_ = 0;      ///< Round trips or windows still to come.
  std::size_t window_ = 0;    ///< 0: ping-pong.
  std::size_t taken_ = 0;     ///< Of the present window.
  bool answered_ = false;
};

}  // namespace brant::bench
