#pragma once

#include <cstddef>
#include <cstdint>

#include "brant/base/intrusive_list.h"
#include "brant/mpi/mpi.h"
#include "models/mpi/keyed_queues.h"
#include "models/mpi/match_key.h"
#include "ops/am/message.h"

namespace brant::mpi {

/// A receive that waits for its message: part of its request. `wanted` may have wildcards.
struct PostedReceive {
  MatchKey wanted;
  std::uint64_t order = 0;  ///< Of posting.
  ListHook<PostedReceive> queue_hook;
};

/// A message that came before its receive. It stands in four queues, so that each kind of receive finds the first one
/// that suits it without a search.
struct EarlyMessage {
  MatchKey key;
  am::Message* message = nullptr;
  ListHook<EarlyMessage> exact;
  ListHook<EarlyMessage> of_source;  ///< For any tag.
  ListHook<EarlyMessage> of_tag;     ///< For any source.
  ListHook<EarlyMessage> of_context;
};

/// Which receive of a rank gets which message: the first posted one that suits a message, and the first message that
/// suits a receive. Every step takes a bounded number of look-ups in hash tables, however many receives and messages
/// wait (docs/decisions/0080).
class Matching {
  using Receives = KeyedQueues<PostedReceive, &PostedReceive::queue_hook>;

 public:
  Matching() = default;
  Matching(const Matching&) = delete;
  Matching& operator=(const Matching&) = delete;

  /// Keeps a receive until a message takes it. False: no memory.
  [[nodiscard]] bool post(PostedReceive& receive) noexcept;
  /// The receive that a message with this key goes to; null: none suits. It stays.
  [[nodiscard]] PostedReceive* find_receive(const MatchKey& key) const noexcept;
  /// The same, taken if `fits` says so.
  template <typename Fits>
  [[nodiscard]] PostedReceive* take_receive(const MatchKey& key, const Fits& fits) noexcept {
    const Receives::Found found = find(key);
    if (found.item == nullptr || !fits(*found.item)) return nullptr;
    receives_.remove(found);
    count_out(*found.item);
    return found.item;
  }
  [[nodiscard]] PostedReceive* take_receive(const MatchKey& key) noexcept {
    return take_receive(key, [](const PostedReceive&) { return true; });
  }
  /// Of one that was posted and not taken.
  void withdraw(PostedReceive& receive) noexcept;

  /// Keeps a message until a receive takes it. False: no memory.
  [[nodiscard]] bool keep(EarlyMessage& message) noexcept;
  /// The message that a receive of `wanted` would get; null: none suits. It stays.
  [[nodiscard]] EarlyMessage* find_message(const MatchKey& wanted) const noexcept;
  /// Takes a message out that was kept.
  void remove(EarlyMessage& message) noexcept;

  [[nodiscard]] std::size_t posted() const noexcept { return posted_; }
  [[nodiscard]] std::size_t kept() const noexcept { return kept_; }
  /// Of the payloads of messages that are kept. Looks at each of them.
  [[nodiscard]] std::size_t kept_bytes() const noexcept;

 private:
  [[nodiscard]] static unsigned wildcards_of(const MatchKey& key) noexcept;
  [[nodiscard]] Receives::Found find(const MatchKey& key) const noexcept;
  void count_out(const PostedReceive& receive) noexcept;

  Receives receives_;
  std::size_t with_wildcards_[4] = {};  ///< Receives posted: bit 0 of the index for any source, bit 1 for any tag.
  std::uint64_t next_order_ = 0;
  std::size_t posted_ = 0;
  KeyedQueues<EarlyMessage, &EarlyMessage::exact> exact_;
  KeyedQueues<EarlyMessage, &EarlyMessage::of_source> of_source_;
  KeyedQueues<EarlyMessage, &EarlyMessage::of_tag> of_tag_;
  KeyedQueues<EarlyMessage, &EarlyMessage::of_context> of_context_;
  std::size_t kept_ = 0;
};

}  // namespace brant::mpi
