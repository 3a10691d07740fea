#pragma once

#include <cassert>
#include <cstdint>

#include "brant/base/buffer.h"
#include "brant/core/path.h"
#include "core/engine.h"
#include "ops/channel/transfer_state.h"
#include "ops/mapping/mapping.h"
#include "ops/mover/move.h"

namespace brant {

class ChannelEndpoint;
struct Transfer;

/// What the records of a channel's sends and receives have in common.
struct ChannelOp : OpOwner, PeerOp {
  enum class Form : std::uint8_t { send, receive, small_receive };

  ChannelOp(ChannelEndpoint& endpoint_in, Form form_in) noexcept
      : endpoint(endpoint_in), form(form_in), is_send(form_in == Form::send) {}

  ChannelEndpoint& endpoint;
  const Form form;
  const bool is_send;
  std::uint64_t number = 0;  ///< Of the message in its direction.
  Buffer buffer;  ///< Of its user: a send's source, a receive's landing. With a shape: what that is laid on, and of
                  ///< how many bytes it is.
  TimePoint posted_at{};  ///< Exact only with a trace.
};

/// The record of a receive that waits for a small message: host memory, over the link. Most messages come complete, and
/// all they need is their place. Any other becomes a Transfer when it comes (see LinkReceiver).
struct SmallReceive final : ChannelOp {
  explicit SmallReceive(ChannelEndpoint& endpoint_in) noexcept : ChannelOp(endpoint_in, Form::small_receive) {}

  ListHook<SmallReceive> hook;
};
static_assert(sizeof(SmallReceive) <= 128, "two cache lines");

/// How the bytes of a transfer's user lie, and those of the message in one run.
struct OwnShape : TransferShapes {
  mutable RunMark mark;  ///< Of what was packed or unpacked last.
};

/// What a transfer has while brant itself copies its bytes, or keeps them: a pinned buffer, memory of the other end.
struct TransferMove final : Move {
  TransferMove(Transfer& transfer_in, const MoveEvents& events_in) noexcept : Move(events_in), transfer(transfer_in) {}

  Transfer& transfer;
  StagePool::Lease lease;
  MappingLease mapped;
  OwnShape* own_shape = nullptr;  ///< Its user's bytes do not lie in one run.
};
static_assert(sizeof(TransferMove) <= 256, "four cache lines");

/// The runtime's record of one send or receive of a channel: lent by the table's pool from post to completion.
struct Transfer final : ChannelOp, private port::WireOp {
  Transfer(ChannelEndpoint& endpoint_in, bool sends) noexcept
      : ChannelOp(endpoint_in, sends ? Form::send : Form::receive) {}

  /// What the network has of it. Its status and bytes also say what became of messages that went another way.
  [[nodiscard]] port::WireOp& wire() noexcept { return *this; }
  [[nodiscard]] const port::WireOp& wire() const noexcept { return *this; }
  static Transfer& of(port::WireOp& wire) noexcept { return static_cast<Transfer&>(wire); }
  [[nodiscard]] TransferState state() const noexcept { return state_; }
  void become(TransferState to) noexcept {
    assert((to == state_ || may_become(is_send, state_, to)) && "a transfer's states follow the table");
    state_ = to;
  }
  /// Has a pinned buffer.
  [[nodiscard]] bool is_staged() const noexcept { return move != nullptr && move->lease.data != nullptr; }
  /// So much of that.
  [[nodiscard]] Buffer staged(std::size_t size) const noexcept {
    return Buffer(move->lease.data, size, MemoryKind::pinned);
  }
  /// How its user's bytes lie behind `buffer.data`, and those of the message in one run; null if they all do.
  [[nodiscard]] const OwnShape* own_shape() const noexcept { return move != nullptr ? move->own_shape : nullptr; }
  /// Of a receive: which way a message goes is its sender's choice, so it was only taken for the same.
  void came_by(Path way) noexcept {
    if (path == Path::ucx || path == Path::shm) path = way;
  }
  /// Of a receive: its message can never be had.
  void note_lost(std::uint64_t message_bytes, bool known_there) noexcept {
    wire().bytes = message_bytes;
    lost = true;
    sender_knows = known_there;
  }
  /// `here` has that shape: no pinned buffer is in its place.
  [[nodiscard]] bool here_is_shaped() const noexcept { return own_shape() != nullptr && !is_staged(); }
  [[nodiscard]] const OwnShape* shape_here() const noexcept { return here_is_shaped() ? own_shape() : nullptr; }

 private:
  TransferState state_ = TransferState::begun;

 public:
  Path path = Path::automatic;
  bool numbered : 1 = false;      ///< A receive whose number the caller named.
  bool drains : 1 = false;        ///< A receive of what nobody wants, so that the sender gets its source back.
  bool let_go : 1 = false;        ///< The other end was told, or told us, that the sender wants its source back.
  bool consumed : 1 = false;      ///< A receive whose message counts as received, whatever became of it.
  bool acknowledged : 1 = false;  ///< The sender wants `delivered`; of a receive, known once its message is there.
  bool elsewhere : 1 = false;     ///< Receive: its message comes over the network, as its sender said over the link.
  bool ghost : 1 = false;         ///< Receive: taken back by its owner, but its message may be on the way.
  bool sender_knows : 1 = false;  ///< Receive: its failure need not be told.
  bool asked : 1 = false;         ///< Send that asks: the receiver has the question.
  bool offered : 1 = false;       ///< Send that asks: the receiver may copy it from where it is, and answers.
  bool by_device : 1 = false;     ///< Receive in host memory: its sender's device may write it. Send: it asked to.
  bool lost : 1 = false;          ///< Receive: its message can never be had; the next receive is for the next one.
  std::uint16_t flag = 0;         ///< See LandingFlags.
  std::uint16_t slot = 0;         ///< See DeviceSlots.
  Status outcome = Status::ok;    ///< Why it is being withdrawn; replaces the wire's `canceled`.
  Buffer here;                    ///< What goes or where it lands first: `buffer`, or a pinned one in its place.
  union {
    std::uint64_t buffer_id = 0;  ///< Until its bytes move: the allocation of its device memory. 0: host memory.
    std::uint64_t moved;          ///< In pieces: bytes that have gone or come.
    std::uint64_t told_bytes;     ///< Receive from elsewhere: of the message, as its sender said.
    Transfer* mate;               ///< Within one process, while they are copied: what it has met.
  };
  TimePoint asked_at{};          ///< Send that waits for its receive: since when, until it is asked for and from then.
  TransferMove* move = nullptr;  ///< While brant itself moves or keeps the bytes.
  ListHook<Transfer> endpoint_hook;  ///< Send: in the endpoint's queue or its list of sends under way.
  ListHook<Transfer> link_hook;      ///< In the link halves' lists.
  ListHook<Transfer> watch_hook;  ///< In a list of what is watched: flags, questions to be asked, slots to come free.
};
static_assert(sizeof(Transfer) <= 256, "four cache lines");

/// The one of a message in a list, or null. It is nearly always the first.
template <auto Hook>
[[nodiscard]] Transfer* find_number(IntrusiveList<Transfer, Hook>& transfers, std::uint64_t number) noexcept {
  Transfer* transfer = transfers.front();
  while (transfer != nullptr && transfer->number != number) transfer = transfers.next(*transfer);
  return transfer;
}

}  // namespace brant
