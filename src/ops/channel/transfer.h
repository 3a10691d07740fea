#pragma once

#include <cstdint>

#include "brant/base/buffer.h"
#include "brant/core/path.h"
#include "core/engine.h"
#include "ops/channel/link_message.h"
#include "ops/copier/stager.h"
#include "ops/mapping/mapping.h"

namespace brant {

class ChannelEndpoint;

/// Where a transfer stands. Sends go queued, copying (staged only), on_wire, awaiting_ack (if `delivered` is wanted);
/// receives go on_wire, copying (staged only).
enum class TransferStage : std::uint8_t { queued, copying, on_wire, awaiting_ack };

/// Where a transfer stands with the link, while it is `on_wire`; `none`: with the network instead.
enum class LinkStage : std::uint8_t {
  none,
  sending_eager,   ///< Waits for room.
  sending_pieces,  ///< Has a landing.
  asking,          ///< Waits for a landing, or to be taken.
  copying,         ///< The device writes into the mapped landing.
  posted,          ///< A receive that the sender need not know of.
  announced,       ///< A receive that the sender knows of.
  retracting,      ///< The sender was asked to forget it.
  landing,         ///< Pieces come in.
  pulling,         ///< Copied from the sender's memory.
};

/// What the records of a channel's sends and receives have in common.
struct ChannelOp : OpOwner, PeerOp {
  enum class Form : std::uint8_t { send, receive, small_receive };

  ChannelOp(ChannelEndpoint& endpoint_in, Form form_in) noexcept
      : endpoint(endpoint_in), form(form_in), is_send(form_in == Form::send) {}

  ChannelEndpoint& endpoint;
  const Form form;
  const bool is_send;
  std::uint64_t number = 0;  ///< Of the message in its direction.
  Buffer landing;
  TimePoint posted_at{};  ///< Exact only with a trace.
};

/// The record of a receive that waits for a small message: host memory, over the link. Most messages come complete, and
/// all they need is their place. Any other becomes a Transfer when it comes (see LinkReceiver).
struct SmallReceive final : ChannelOp {
  explicit SmallReceive(ChannelEndpoint& endpoint_in) noexcept : ChannelOp(endpoint_in, Form::small_receive) {}

  ListHook<SmallReceive> hook;
};
static_assert(sizeof(SmallReceive) <= 128, "two cache lines");

/// The runtime's record of one send or receive of a channel: lent by the table's pool from post to completion.
struct Transfer final : ChannelOp {
  Transfer(ChannelEndpoint& endpoint_in, bool sends) noexcept
      : ChannelOp(endpoint_in, sends ? Form::send : Form::receive) {
    wire.owner = this;
    copy.owner = this;
  }

  struct WireStep : port::WireOp {
    Transfer* owner = nullptr;
  };
  struct CopyStep : StageCopy {
    Transfer* owner = nullptr;
  };
  struct LinkStep {
    LinkStage stage = LinkStage::none;
    bool ghost = false;         ///< Receive: taken back by its owner, but its message may be on the way.
    bool sender_knows = false;  ///< Receive: its failure need not be told.
    bool offered = false;       ///< Send that asks: the receiver may copy it from where it is, and answers.
    bool lost = false;          ///< Receive: its message can never be had; the next receive is for the next one.
    std::uint16_t flag = 0;     ///< See LandingFlags.
    std::uint16_t slot = 0;     ///< See DeviceSlots.
    std::uint64_t moved = 0;
    std::uint64_t source_id = 0;  ///< Send that asks: the allocation of its device memory.
    TimePoint asked_at{};         ///< Send that waits for its receive: since when, until it is asked for and from then.
    ConstBuffer bytes;            ///< Send: what goes, host-accessible unless it goes elsewhere. Pulling: where it is.
    Buffer target;                ///< Receive: where it lands first.
    MappingLease mapped;          ///< Of the memory of the other end that is copied to or from.
    LinkMessage told{};           ///< Receive: word of a message that comes over the network, or is being pulled.
  };

  bool numbered = false;      ///< A receive whose number the caller named.
  bool drains = false;        ///< A receive of what nobody wants, so that the sender gets its source back.
  bool let_go = false;        ///< The other end was told, or told us, that the sender wants its source back.
  bool consumed = false;      ///< A receive whose message counts as received, whatever became of it.
  bool acknowledged = false;  ///< The sender wants `delivered`; of a receive, known once its message is there.
  TransferStage stage = TransferStage::queued;
  Path path = Path::automatic;
  Status outcome = Status::ok;  ///< Why it is being withdrawn; replaces the wire's `canceled`.
  ConstBuffer source;
  StagePool::Lease lease;
  WireStep wire;
  CopyStep copy;
  LinkStep link;
  ListHook<Transfer> endpoint_hook;  ///< In the endpoint's queue (stage queued) or list of sends under way.
  ListHook<Transfer> pull_hook;      ///< In the list of receives that are being pulled.
  ListHook<Transfer> flag_hook;      ///< In the list of receives whose flags are watched.
  ListHook<Transfer> question_hook;  ///< In the list of sends that will ask for their receives.
  ListHook<Transfer> slot_hook;      ///< In the list of sends that wait for a slot.
  ListHook<Transfer> link_hook;      ///< In the link halves' lists.
};

}  // namespace brant
