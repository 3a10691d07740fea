#pragma once

#include "core/engine.h"
#include "ops/channel/transfer.h"

namespace brant {

/// Copies large messages out of memory that their sender shares, some of each in turn. One per peer, for all channels
/// from it.
class LinkPuller final : private Poller {
 public:
  explicit LinkPuller(Engine& engine) noexcept : engine_(engine) {}
  LinkPuller(const LinkPuller&) = delete;
  LinkPuller& operator=(const LinkPuller&) = delete;
  ~LinkPuller() { engine_.detach(static_cast<Poller&>(*this)); }

  /// Copies `transfer.link.bytes` to `transfer.link.target`, which may become another place, with what was copied,
  /// until it ends. True: all of it was copied. False: the rest follows, and the endpoint is told at the end
  /// (`ChannelEndpoint::pulled`).
  bool start(Transfer& transfer) noexcept;
  /// Nothing happens if it is not being pulled.
  void withdraw(Transfer& transfer) noexcept;

 private:
  unsigned poll() noexcept override;

  Engine& engine_;
  IntrusiveList<Transfer, &Transfer::pull_hook> pulling_;
};

}  // namespace brant
