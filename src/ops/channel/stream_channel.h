#pragma once

#include <memory>
#include <optional>
#include <span>

#include "ops/channel/link_message.h"
#include "ops/channel/stream_lane.h"

namespace brant {

/// The transfers of one end that streams trigger: its lane, from `prepare` on, and what the other end said before that.
class StreamChannel {
 public:
  explicit StreamChannel(ChannelEndpoint& end) noexcept : end_(end) {}

  /// See `Channel`.
  Status prepare(std::chrono::nanoseconds patience, Op& op) noexcept;
  /// The lane, or why nothing can go.
  Result<StreamLane*> lane() noexcept;
  void on_record(const LinkMessage& message, std::span<const std::byte> payload) noexcept;
  void close() noexcept;
  /// There is a lane, or word of the other end's.
  [[nodiscard]] bool in_use() const noexcept { return lane_ || mailbox_ || refused_; }

 private:
  [[nodiscard]] const char* obstacle() const noexcept;
  void on_mailbox(const port::ExportRecord& mailbox) noexcept;
  void on_refused() noexcept;
  [[nodiscard]] bool waits() const noexcept { return lane_ && !lane_->connected() && lane_->opening(); }

  ChannelEndpoint& end_;
  std::unique_ptr<StreamLane> lane_;
  std::optional<port::ExportRecord> mailbox_;  ///< Of the other end, if it came before.
  bool refused_ = false;                       ///< By the other end.
};

}  // namespace brant
