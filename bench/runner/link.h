#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "bench/ucx/baseline.h"
#include "brant/brant.h"

namespace brant::bench {

/// A channel for everything that is not measured: barriers, addresses, samples. Blocks; throws Error when the other
/// side is gone.
class Link {
 public:
  Link(Runtime& runtime, Rank peer, ChannelId id) : runtime_(runtime), channel_(Channel::open(runtime, peer, id)) {}

  /// The rival is kept moving while a link waits: the other process may still need it to finish. Null for none.
  void keep_moving(UcxBaseline* rival) noexcept { rival_ = rival; }
  /// It does not sleep while it waits: what is measured needs this process's CPU, and times no waking up.
  void stay_awake() noexcept { awake_ = true; }

  void send(std::span<const std::byte> bytes);
  void receive(std::span<std::byte> bytes);
  /// Any length up to 1 GiB; the length goes first.
  void send_block(std::span<const std::byte> bytes);
  std::vector<std::byte> receive_block();

 private:
  void finish(Status posted, Op& op, Flag& flag, std::size_t bytes, const char* what);

  Runtime& runtime_;
  Channel channel_;
  UcxBaseline* rival_ = nullptr;
  bool awake_ = false;
};

}  // namespace brant::bench
