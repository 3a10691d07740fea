#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "core/engine.h"
#include "ops/channel/link_message.h"
#include "ops/channel/transfer.h"
#include "ops/mapping/flag_page.h"

namespace brant {

/// Words in the memory of the link to a peer by which the sender's courier itself tells the receiver that a message has
/// landed, before the sender's CPU has seen it. No record follows: the CPU only wakes a receiver that sleeps. (Should
/// the word become visible after that, against the order of the bus, the receiver finds it at the end of its sleep.) A
/// word is not used again before it was set, or the sender has said that it will not set it.
class LandingFlags final : private Poller {
 public:
  /// What a flag says: a message's bytes, and whether its sender waits for an acknowledgement.
  struct Word {
    static constexpr std::size_t kBytesMax = (std::size_t{1} << 30) - 1;
    static constexpr std::uint32_t pack(std::size_t bytes, bool acknowledged) noexcept {
      return 1u | (acknowledged ? 2u : 0u) | static_cast<std::uint32_t>(bytes) << 2;
    }
    static constexpr std::size_t bytes(std::uint64_t word) noexcept { return static_cast<std::size_t>(word >> 2); }
    static constexpr bool acknowledged(std::uint64_t word) noexcept { return (word & 2u) != 0; }
  };
  /// Flags are numbered from 1; 0: none.
  static constexpr std::uint16_t kNone = 0;

  /// Throws only if memory is exhausted.
  LandingFlags(Engine& engine, Peer& peer, FlagPage& there)
      : engine_(engine), peer_(peer), there_(there), here_(peer.link->flags_here()), free_(here_.size()) {}
  LandingFlags(const LandingFlags&) = delete;
  LandingFlags& operator=(const LandingFlags&) = delete;
  ~LandingFlags() { engine_.pollers().detach(*this); }

  // The receiver's side.
  /// Watches a flag for a receive, if one is free: `transfer.flag`. Never more than tuned::kAnnouncedMax at a time.
  void watch(Transfer& transfer) noexcept;
  /// The receive ended and the sender is done with its flag, if it has one.
  void let_go(Transfer& transfer) noexcept;
  /// The receive is given up, and the sender may still set its flag.
  void forsake(Transfer& transfer) noexcept;
  /// The sender will not set the flag of a receive that was given up.
  void give_back(std::uint16_t flag) noexcept;

  // The sender's side.
  /// The flag as this device reaches it, or null if it cannot.
  [[nodiscard]] std::uint64_t* there(std::uint16_t flag) noexcept;
  /// The device has set a flag.
  void was_set() noexcept { peer_.link->wake(); }

 private:
  unsigned poll() noexcept override;
  [[nodiscard]] bool lets_sleep() const noexcept override;
  [[nodiscard]] std::uint64_t read(std::uint16_t flag, std::memory_order order) const noexcept;
  std::uint16_t take() noexcept;
  void unwatch(Transfer& transfer) noexcept;
  void free(std::uint16_t flag) noexcept;

  Engine& engine_;
  Peer& peer_;
  FlagPage& there_;
  const std::span<std::uint64_t> here_;
  /// A ring, the one free longest first: flags of messages that follow each other then lie side by side, so that the
  /// device sets several with one access, and one miss of the cache shows them.
  std::vector<std::uint16_t> free_;
  std::size_t free_first_ = 0;
  std::size_t free_count_ = 0;
  std::vector<std::uint16_t> forsaken_;  ///< Free once they are set.
  std::uint16_t made_ = 0;
  IntrusiveList<Transfer, &Transfer::watch_hook> watched_;
  std::size_t watched_count_ = 0;
};

}  // namespace brant
