#pragma once

#include "ops/channel/transfer.h"

namespace brant {

/// How messages of one end go over the network: each by a tag of its own. The posts return as those of the wire;
/// `ChannelEndpoint::carried` follows in_progress.
class ChannelNetwork {
 public:
  explicit ChannelNetwork(ChannelEndpoint& end) noexcept : end_(end) {}

  /// Sends `transfer.here`.
  Status send(Transfer& transfer) noexcept;
  Status receive(Transfer& transfer, Buffer target) noexcept;
  /// A receive that was taken back, or whose message is lost.
  void withdraw(Transfer& receive, Status why) noexcept;
  void cancel(Transfer& transfer) noexcept;
  /// Whether it takes memory of this process to or from the peer; `buffer_id`: its allocation, if it is a device's.
  [[nodiscard]] bool takes(const Buffer& memory, std::uint64_t buffer_id) noexcept;

 private:
  Status noted(Status posted) noexcept;
  static void on_done(port::WireOp& wire) noexcept;

  ChannelEndpoint& end_;
};

}  // namespace brant
