#pragma once

#include "brant/base/ids.h"
#include "core/engine.h"
#include "core/per_peer.h"
#include "core/pollers.h"
#include "ops/am/messenger.h"
#include "ops/rpc/carrier.h"
#include "ops/rpc/outbox.h"

namespace brant::remote {

/// The way of calls and answers out of this process, and what waits here to take it.
class Outboxes final : private Poller {
 public:
  /// Told, from progress, of a peer to which nothing leaves any more.
  Outboxes(Engine& engine, Carrier& carrier, am::TroubleHandler trouble, void* context);
  Outboxes(const Outboxes&) = delete;
  Outboxes& operator=(const Outboxes&) = delete;

  /// A call. ok: taken over. Else the caller keeps it: limit_reached (`at_once`: also where it would have to wait
  /// here), peer_lost, invalid_argument, shutting_down, no_memory.
  Status post(Rank to, am::Message& message, bool at_once) noexcept;
  /// Takes an answer over: it leaves now or later, or `to` is no more.
  void post_answer(Rank to, am::Message& message) noexcept;

  /// Of a call of this process to itself: it is about to run, or waits once more.
  void leave_queue(const am::Message& message) noexcept;
  void join_queue(const am::Message& message) noexcept;

  void drop_all_for(Rank peer) noexcept;
  void forget(Rank peer) noexcept;
  /// The runtime ends: nothing leaves any more.
  void close() noexcept;

 private:
  struct PeerOutbox {
    Rank rank;
    Outbox box;
  };

  Status keep(Rank to, am::Message& message) noexcept;
  Outbox* of(Rank peer) noexcept;
  unsigned poll() noexcept override;

  Engine& engine_;
  Carrier& carrier_;
  const am::TroubleHandler trouble_;
  void* const context_;
  PerPeer<PeerOutbox> outboxes_;
  Outbox::Tally own_;  ///< Calls of this process to itself that were not run yet.
  bool closed_ = false;
};

}  // namespace brant::remote
