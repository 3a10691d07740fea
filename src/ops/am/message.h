#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "port/wire.h"

namespace brant::am {

/// Who receives a message: one number per model above.
enum class ServiceId : std::uint8_t {
  chare = 1,
  pgas = 2,
  mpi = 3,
  coll = 4,
  rpc = 5,
  mpi_windows = 6,
  rma = 7,
  test = 15
};
inline constexpr unsigned kServices = 16;

/// What a service puts in front of the payload, at most. With the messenger's own 16 bytes a message's header is at
/// most 40 bytes, which a record link between processes of one host can carry in one piece.
inline constexpr std::size_t kHeaderBytesMax = 24;

/// The header as it travels.
struct WireHeader {
  std::uint32_t sequence = 0;  ///< Counts the messages of this pair and direction.
  std::uint32_t consumed = 0;  ///< Units of the other direction that were released so far (the credit, piggybacked).
  std::int32_t source = -1;    ///< Rank of the sender.
  ServiceId service{};
  std::uint8_t header_bytes = 0;
  std::uint16_t session = 0;  ///< The service's own: tells its messages from those of its earlier lives.
  std::byte user[kHeaderBytesMax] = {};
};
static_assert(sizeof(WireHeader) == 40 && std::is_trivially_copyable_v<WireHeader>);
inline constexpr std::size_t kOwnHeaderBytes = sizeof(WireHeader) - kHeaderBytesMax;

/// One message, from the moment its sender packs it until its receiver has consumed it: a block lent by the
/// `MessagePool`, with the payload behind the record (or in the memory of its sender: `borrowed`). It has one owner at
/// a time: whoever made it, then the messenger (`send` took it), then the handler of the receiving service, who gives
/// it back with `Messenger::release`. Within a process the very same block travels.
struct Message : port::WireOp {
  static constexpr std::uint64_t kOwn = ~std::uint64_t{0};

  Message* following = nullptr;  ///< Link of the list the present owner keeps it in.
  std::byte* data = nullptr;     ///< The payload, aligned to 16.
  std::size_t bytes = 0;
  std::uint64_t scratch[2]{};     ///< The present owner's.
  std::int32_t peer = -1;         ///< Sending: the destination. Received: the source.
  std::uint32_t units = 0;        ///< Received: what it cost of its sender's window; 0 for a message of this process.
  std::uint64_t borrowed = kOwn;  ///< Received: where its block lies in its sender's region.
  std::uint8_t size_class = 0;    ///< The pool's.
  bool landed = true;             ///< Receiving: the payload is here.
  WireHeader wire;

  template <typename Header>
    requires(std::is_trivially_copyable_v<Header> && sizeof(Header) <= kHeaderBytesMax)
  void set_header(const Header& header) noexcept {
    std::memcpy(wire.user, &header, sizeof(Header));
    wire.header_bytes = sizeof(Header);
  }
  template <typename Header>
    requires(std::is_trivially_copyable_v<Header> && sizeof(Header) <= kHeaderBytesMax)
  [[nodiscard]] Header header() const noexcept {
    Header header;
    std::memcpy(&header, wire.user, sizeof(Header));
    return header;
  }
  [[nodiscard]] std::span<const std::byte> wire_header() const noexcept {
    return {reinterpret_cast<const std::byte*>(&wire), kOwnHeaderBytes + wire.header_bytes};
  }
  [[nodiscard]] std::span<const std::byte> payload() const noexcept { return {data, bytes}; }
};

/// First in, first out, through `Message::following`.
class MessageList {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] Message* front() const noexcept { return head_; }
  void push_back(Message& message) noexcept {
    message.following = nullptr;
    (tail_ != nullptr ? tail_->following : head_) = &message;
    tail_ = &message;
  }
  void push_front(Message& message) noexcept {
    message.following = head_;
    head_ = &message;
    if (tail_ == nullptr) tail_ = &message;
  }
  Message* pop_front() noexcept {
    Message* message = head_;
    if (message != nullptr && (head_ = message->following) == nullptr) tail_ = nullptr;
    return message;
  }
  /// Keeps the list sorted by sequence number; nearly always at the end, however many wait for one that is late. False
  /// if that number stands there already.
  bool insert_by_sequence(Message& message) noexcept {
    if (tail_ != nullptr && static_cast<std::int32_t>(message.wire.sequence - tail_->wire.sequence) > 0) {
      push_back(message);
      return true;
    }
    Message** place = &head_;
    while (*place != nullptr) {
      const auto ahead = static_cast<std::int32_t>(message.wire.sequence - (*place)->wire.sequence);
      if (ahead == 0) return false;
      if (ahead < 0) break;
      place = &(*place)->following;
    }
    message.following = *place;
    *place = &message;
    if (message.following == nullptr) tail_ = &message;
    return true;
  }

 private:
  Message* head_ = nullptr;
  Message* tail_ = nullptr;
};

}  // namespace brant::am
