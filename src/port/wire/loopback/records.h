#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "brant/base/intrusive_list.h"
#include "port/wire.h"
#include "port/wire/loopback/pool.h"

/// What is under way: messages, posted receives, one-sided operations. All are pooled and linked intrusively.
namespace brant::port::loopback {

class LoopbackWire;
struct Endpoint;

enum class RecordKind : std::uint8_t { message, receive, one_sided };

/// WireOp::request points to one of these while the operation is pending.
struct Record {
  RecordKind kind = RecordKind::message;
  WireOp* op = nullptr;
};

enum class MessageKind : std::uint8_t { tagged, active };

/// Which list of its receiver a message is in.
enum class Place : std::uint8_t { none, arriving, unexpected, inbox, waiting };

/// A message between its send and its end at the receiver. An eager one owns a copy of its bytes; the other points to
/// the sender's memory.
struct Message : Record {
  static constexpr std::size_t kInlineBytes = 256;

  ListHook<Message> place;    ///< Free list, or one of the receiver's lists (`where`).
  ListHook<Message> sibling;  ///< The sending endpoint's list of pending messages; only when `op` is set.
  LoopbackWire* from = nullptr;
  LoopbackWire* to = nullptr;  ///< Null when the receiver is dead or closed.
  Endpoint* endpoint = nullptr;
  MessageKind type = MessageKind::tagged;
  bool eager = false;
  bool source_gone = false;  ///< The sender gave up or died: a waiting payload will never come.
  Place where = Place::none;
  std::uint64_t tag = 0;  ///< Or the active-message id.
  std::uint64_t due = 0;  ///< In progress calls of the receiver.
  ConstBuffer source;     ///< The sender's memory, or our copy.
  std::size_t header_bytes = 0;
  std::byte* storage = nullptr;  ///< Header, padding, payload: `inline_storage` or a pooled buffer.
  alignas(16) std::array<std::byte, kInlineBytes> inline_storage{};
};
using Messages = IntrusiveList<Message, &Message::place>;

struct Receive : Record {
  ListHook<Receive> place;
  std::uint64_t tag = 0;
  std::uint64_t mask = 0;
  Buffer landing;
};
using Receives = IntrusiveList<Receive, &Receive::place>;

enum class OneSidedKind : std::uint8_t { put, get, atomic, flush };

struct Segment;

/// A one-sided operation; performed at once, or after a delay in the initiator's progress.
struct OneSided : Record {
  ListHook<OneSided> place;
  Endpoint* endpoint = nullptr;
  OneSidedKind type = OneSidedKind::flush;
  std::uint64_t due = 0;
  Segment* segment = nullptr;  ///< Of the remote bytes; checked again when a delayed operation is performed.
  Buffer remote;
  Buffer local;
  Atomic atomic;
  std::uint64_t* before = nullptr;
};
using OneSideds = IntrusiveList<OneSided, &OneSided::place>;

/// What a WireEndpoint of this adapter is. Lives as long as its wire.
struct Endpoint {
  LoopbackWire* wire = nullptr;
  std::size_t peer = 0;
  bool closed = false;
  IntrusiveList<Message, &Message::sibling> pending;

  /// Nobody waits for the end of this message any more.
  void forget(Message& message) noexcept {
    if (pending.linked(message)) pending.remove(message);
  }
};

}  // namespace brant::port::loopback
