#pragma once

#include "ops/channel/link_arrivals.h"
#include "ops/channel/transfer.h"

namespace brant {

struct LostMessage;

/// What one end of a channel has under way whose other end is in this process too. Message n meets receive n here,
/// whoever comes first, and its bytes are moved once, without the network and without records that tell of it. Small
/// messages that come before their receive are kept here, at the end that sent them.
class LocalMatcher {
 public:
  explicit LocalMatcher(ChannelEndpoint& end) noexcept;
  LocalMatcher(const LocalMatcher&) = delete;
  LocalMatcher& operator=(const LocalMatcher&) = delete;
  ~LocalMatcher();
  /// The other end is there, from now on until one of the two goes.
  void meet(LocalMatcher& other) noexcept {
    other_ = &other;
    other.other_ = this;
  }

  // Messages of this end.
  /// Sends `transfer.here`. ok, truncated: that was all. in_progress: `ChannelEndpoint::carried` will be called.
  /// Others: nothing has happened, and a receive of it still waits.
  Status send(Transfer& send) noexcept;
  /// A message of at most `kEagerBytes` in host memory, without a record of it. False: it needs one.
  bool send_at_once(std::uint64_t number, ConstBuffer bytes) noexcept;
  /// The bytes of a message are in its landing, or could not be copied there.
  void copied(Transfer& send, Status status) noexcept;
  /// Gives up a send that waits for its receive. False if it does not.
  bool withdraw_send(Transfer& send) noexcept;
  /// Nobody observes a send any more, and its source is to be free soon.
  void let_go(Transfer& send) noexcept;

  // Receives of this end.
  /// As `send`, into `transfer.here`.
  Status receive(Transfer& receive) noexcept;
  /// Withdraws a pending receive; the outcome comes by `carried`, now or later.
  void withdraw_receive(Transfer& receive) noexcept;
  /// A message can never be had: its receive ends, if it waits.
  bool end_lost(const LostMessage& message) noexcept;
  /// Nobody will receive a message: what is kept of it goes.
  void drop(std::uint64_t number) noexcept;

 private:
  using Transfers = IntrusiveList<Transfer, &Transfer::link_hook>;

  bool keep_copy(std::uint64_t number, ConstBuffer bytes, bool acknowledged) noexcept;
  void wait_for_receive(Transfer& send) noexcept;
  Status take_early(Transfer& receive, Arrival& early) noexcept;
  Status move(Transfer& send, Transfer& receive) noexcept;
  [[nodiscard]] Path path_between(const Transfer& send, const Transfer& receive) noexcept;
  void end_receive(Transfer& receive, Status status) noexcept;
  void move_or_wait(Transfer& send) noexcept;

  ChannelEndpoint& end_;
  LocalMatcher* other_ = nullptr;  ///< Null: nothing is there, and nothing waits there.
  Transfers waiting_;              ///< Sends without a receive yet.
  Transfers posted_;               ///< Receives without a message yet.
  LinkArrivals early_;             ///< Copies of messages of this end that have no receive yet.
};

}  // namespace brant
