#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "brant/base/status.h"
#include "core/commands.h"
#include "core/held_messages.h"
#include "core/host_links.h"
#include "core/peers.h"
#include "core/services.h"
#include "port/boot.h"
#include "port/wire.h"

namespace brant {

/// How the end of a program is told to those who may wait for it (docs/decisions/0022). Whoever connects to a process
/// greets it, so that a process knows all whose waiting it can end, also those that it never connected to itself. When
/// its program has ended it says farewell to all of them: behind the words of its services, which say for each object
/// how much was sent, so that a receiver knows what still comes whatever overtakes what. The worker's thread.
class Farewell {
 public:
  Farewell(const port::JobInfo& job, port::Wire& wire, HeldMessages& messages, HostLinks& links, Commands& commands,
           Services& services, Peers& peers);
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;

  /// The program here has ended. May be repeated: what found no room is said again.
  void say() noexcept;

 private:
  enum class Kind : std::uint32_t { greeting, farewell };
  struct Word {
    Kind kind = Kind::greeting;
    std::int32_t rank = -1;
    std::uint32_t service_words = 0;  ///< Farewell: what the services have said before.
  };
  /// Of one peer.
  struct Talk {
    port::WireOp greeting, farewell;
    std::uint32_t service_words = 0;
    bool greeted_us = false;
    bool services_spoke = false;
    bool said = false;
    bool parted = false;  ///< Our services know that its program has ended.
  };

  Talk* talk(const Peer& peer) noexcept;
  void greet(Peer& peer) noexcept;
  void say_to(Peer& peer) noexcept;
  Status post(Peer& peer, const Word& word, port::WireOp& op) noexcept;
  void hear(const Word& word) noexcept;
  static void on_word(void* farewell, port::AmMessage& message) noexcept;
  /// In a later part of the same progress, behind what the peers had sent over their links.
  void take_leave() noexcept;

  const port::JobInfo& job_;
  port::Wire& wire_;
  HostLinks& links_;
  Commands& commands_;
  Services& services_;
  Peers& peers_;
  bool ended_ = false;                        ///< The program here.
  bool due_ = false;                          ///< Some peer said farewell and the services were not told yet.
  std::vector<std::unique_ptr<Talk>> talks_;  ///< By rank; null until the first word.
};

}  // namespace brant
