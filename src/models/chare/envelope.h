#pragma once

#include <cstdint>
#include <cstring>

#include "brant/base/archive.h"
#include "brant/chare/index.h"
#include "ops/am/message.h"

namespace brant::detail {

enum class MessageKind : std::uint8_t {
  call = 1,       ///< Invoke an entry of one element.
  broadcast,      ///< Invoke an entry of all elements; goes by a tree.
  multicast,      ///< Invoke an entry of the members of a section; goes by a tree over the ranks that have some.
  create,         ///< Make a collection; goes by a tree.
  insert,         ///< Make an element.
  destroy,        ///< Delete an element.
  destroy_all,    ///< Destroy a collection; goes by a tree.
  reply,          ///< The result of a call, or its error.
  hello,          ///< To the other end of a channel between chares.
  depart,         ///< Within a process: an element moves away when everything before it has run.
  moved,          ///< An element comes from another rank.
  place,          ///< What `place::Delivery` says to itself on other ranks.
  exit_asked,     ///< To rank 0: somebody called exit.
  stop,           ///< By a tree: run what waits, then no more, and say how many were sent and run.
  stopped,        ///< To rank 0: the answer.
  ended,          ///< By a tree: leave with a code.
  failed,         ///< By a tree: leave, an error was reported.
  wave,           ///< By a tree: are you idle? See quiet.h.
  wave_answer,    ///< To rank 0.
  report_asked,   ///< By a tree: who waits for what?
  report,         ///< To rank 0.
  left,           ///< To rank 0, by rank 0 to all: the sender's Chares is destroyed, and the program had not ended.
  numbers_asked,  ///< To rank 0: names that were enrolled late.
  numbers_given,  ///< By rank 0: the answer.
};

/// In front of every chare message.
struct Envelope {
  static constexpr std::uint8_t kWide = 1;        ///< The payload begins with the rest of the element's key.
  static constexpr std::uint8_t kExpedited = 2;   ///< Runs before all priorities.
  static constexpr std::uint8_t kData = 4;        ///< A DataBlock stands in front of the arguments.
  static constexpr std::uint8_t kDirect = 8;      ///< Of an element that moved: straight from its sender to its place.
  static constexpr std::uint8_t kPassedOn = 16;   ///< A Trail stands behind the payload.
  static constexpr std::uint8_t kInternal = 128;  ///< A step of a protocol of ours, which nobody can await.

  std::uint32_t collection = 0;
  std::uint16_t number = 0;  ///< Of the entry or constructor.
  MessageKind kind{};
  std::uint8_t flags = 0;
  std::int32_t priority = 0;
  std::uint32_t reply = 0;  ///< Which future waits at the source (0: none); for messages that go by a tree, its root.
  std::uint64_t key = 0;    ///< First word of the element's key; the section; a code for the control messages.

  /// By the tree over all ranks.
  [[nodiscard]] bool by_tree() const noexcept {
    return kind == MessageKind::broadcast || kind == MessageKind::create || kind == MessageKind::destroy_all ||
           kind == MessageKind::stop || kind == MessageKind::ended || kind == MessageKind::failed ||
           kind == MessageKind::wave || kind == MessageKind::report_asked;
  }
  [[nodiscard]] bool has_data() const noexcept { return (flags & kData) != 0; }
  /// It knows of a move, even if this rank does not yet.
  [[nodiscard]] bool follows() const noexcept { return (flags & (kDirect | kPassedOn)) != 0; }
  /// Goes to one element, wherever that lives.
  [[nodiscard]] bool to_element() const noexcept { return kind == MessageKind::call || kind == MessageKind::hello; }
  /// Messages of the ending: they wait for no credit.
  [[nodiscard]] bool urgent() const noexcept { return kind >= MessageKind::exit_asked; }
  /// Those that `exit` waits for.
  [[nodiscard]] bool counted() const noexcept {
    return kind >= MessageKind::call && kind <= MessageKind::multicast && (flags & kInternal) == 0;
  }
};
static_assert(sizeof(Envelope) == am::kHeaderBytesMax);

inline constexpr std::size_t kWideBytes = 16;    // two more words of a key
inline constexpr std::size_t kReplyPrefix = 16;  // the status, padded so that results are aligned
inline constexpr std::size_t kCreateBytes = 48;  // what describes a collection, in front of its constructor's arguments

/// Behind the payload of a message that a rank has passed on to an element that moved.
struct Trail {
  std::int32_t origin = -1;  ///< Whose order it keeps: the sender, or the home that spread it.
  std::int32_t caller = -1;  ///< Who is answered.
  std::uint8_t hops = 0;
  std::uint8_t by_home = 0;
  std::uint16_t unused = 0;
};
static_assert(sizeof(Trail) == 12);

/// What the key of a single chare says. Each maker counts its own, so that no two are alike.
struct SingleNumber {
  std::int32_t rank = -1;   ///< Where it lives; below 2^24.
  std::int32_t maker = -1;  ///< The rank that made it.
  std::uint64_t count = 0;  ///< Of those that it made; below 2^48.

  [[nodiscard]] ElementKey key() const noexcept {
    const auto made_by = static_cast<std::uint64_t>(maker);
    return ElementKey::of(
        Single{static_cast<std::uint64_t>(rank) << 40 | (made_by & 0xffff) << 24 | (count & 0xff'ffff),
               made_by >> 16 << 48 | count >> 24});
  }
  static SingleNumber of(const ElementKey& key) noexcept {
    const std::uint64_t low = key.word[0], high = key.word[1];
    return {rank_of(key), static_cast<std::int32_t>((low >> 24 & 0xffff) | high >> 48 << 16),
            (high & 0xffff'ffff'ffff) << 24 | (low & 0xff'ffff)};
  }
  static std::int32_t rank_of(const ElementKey& key) noexcept { return static_cast<std::int32_t>(key.word[0] >> 40); }
};

inline ElementKey key_of(const am::Message& message, const Envelope& envelope) noexcept {
  ElementKey key;
  key.word[0] = envelope.key;
  if ((envelope.flags & Envelope::kWide) != 0) std::memcpy(&key.word[1], message.data, kWideBytes);
  return key;
}

inline ReadArchive arguments_of(Chares& chares, const am::Message& message, const Envelope& envelope) noexcept {
  const std::size_t prefix = (envelope.flags & Envelope::kWide) != 0 ? kWideBytes : 0;
  return {&chares, message.data + prefix, message.bytes - prefix};
}

/// Who sent it; messages of this process do not say.
inline std::int32_t source_of(const am::Message& message, std::int32_t self) noexcept {
  return message.wire.source < 0 ? self : message.wire.source;
}

/// What the scheduler notes on a message while it owns it (in `Message::scratch`).
struct Notes {
  std::uint32_t holders = 0;    ///< Coroutines that read their arguments in the message.
  std::uint32_t next_slot = 0;  ///< A broadcast that is partly run goes on there,
  std::uint32_t end_slot = 0;   ///< and ends here.
  std::uint32_t flags = 0;

  static constexpr std::uint32_t kUndelivered = 1;  ///< Counts as sent here and not delivered.
  static constexpr std::uint32_t kStarted = 2;      ///< A broadcast whose end is known, a multicast that was passed on.
};
static_assert(sizeof(Notes) == sizeof(am::Message::scratch));

inline Notes notes_of(const am::Message& message) noexcept {
  Notes notes;
  std::memcpy(&notes, message.scratch, sizeof(notes));
  return notes;
}
inline void set_notes(am::Message& message, const Notes& notes) noexcept {
  std::memcpy(message.scratch, &notes, sizeof(notes));
}

}  // namespace brant::detail
