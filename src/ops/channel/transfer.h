#pragma once

#include <cstdint>

#include "brant/base/buffer.h"
#include "brant/core/path.h"
#include "core/engine.h"
#include "ops/channel/stager.h"

namespace brant {

class ChannelEndpoint;

/// Where a transfer stands. Sends go queued, copying (staged only), on_wire, awaiting_ack (if `delivered` is wanted);
/// receives go on_wire, copying (staged only).
enum class TransferStage : std::uint8_t { queued, copying, on_wire, awaiting_ack };

/// The runtime's record of one send or receive of a channel: lent by the table's pool from post to completion.
struct Transfer final : OpOwner, PeerOp {
  Transfer(ChannelEndpoint& endpoint_in, bool is_send_in) noexcept : endpoint(endpoint_in), is_send(is_send_in) {
    wire.owner = this;
    copy.owner = this;
  }

  struct WireStep : port::WireOp {
    Transfer* owner = nullptr;
  };
  struct CopyStep : StageCopy {
    Transfer* owner = nullptr;
  };

  ChannelEndpoint& endpoint;
  const bool is_send;
  bool acknowledged = false;  ///< Send: the sender wants `delivered`.
  TransferStage stage = TransferStage::queued;
  Path path = Path::automatic;
  Status outcome = Status::ok;  ///< Why it is being withdrawn; replaces the wire's `canceled`.
  std::uint64_t number = 0;     ///< Of the message in its direction.
  ConstBuffer source;
  Buffer landing;
  StagePool::Lease lease;
  WireStep wire;
  CopyStep copy;
  ListHook<Transfer> endpoint_hook;  ///< In the endpoint's queue (stage queued) or list of sends under way.
};

}  // namespace brant
