#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/mapped_file.h"
#include "base/unique_fd.h"
#include "port/link/shared_memory/ring.h"

/// The memory into which the other processes of the host write: one ring for each, and a bell to wake its owner.
namespace brant::port::peer {

/// What others need to reach an inbox. Trivially copyable: travels as bytes.
struct InboxAddress {
  MemoryFileRecord file;
  std::uint32_t places = 0;  ///< How many rings it has.
  std::int32_t bell = -1;    ///< The writing end of its owner's pipe, a file number there.
};

/// The first page of an inbox; the rings follow.
struct InboxHead {
  std::atomic<std::uint32_t> asleep;    ///< The owner sleeps: ring its bell after a push.
  std::atomic<std::uint32_t> barriers;  ///< It orders a barrier of all processes before it sleeps. Never changes.
};

/// One process's view of an inbox: its own, or that of a peer. Unmapped when it goes.
class Inbox {
 public:
  /// Makes this process's own. Pages that nobody writes to take no memory.
  static Result<Inbox> create(std::uint32_t places) noexcept;
  /// Maps a peer's. The errors of `MemoryFile::open`.
  static Result<Inbox> open(const InboxAddress& address) noexcept;

  [[nodiscard]] Result<InboxAddress> address() const noexcept;
  [[nodiscard]] std::uint32_t places() const noexcept { return places_; }
  [[nodiscard]] RingMemory& ring(std::uint32_t place) const noexcept;

  // The owner's side.
  [[nodiscard]] int event_fd() const noexcept { return listening_end_.get(); }
  /// A record that its writer had not seen asleep is visible to this process afterwards.
  void fall_asleep() noexcept;
  /// Ends the sleep and takes what rang meanwhile.
  void wake_up() noexcept;

  // The peers' side.
  /// The owner's barrier orders what a peer does that takes part in them; else the peer has to.
  [[nodiscard]] bool orders_barriers() const noexcept { return head().barriers.load(std::memory_order_relaxed) != 0; }
  /// After a push: wakes the owner if it sleeps.
  void ring_if_asleep() noexcept {
    if (head().asleep.load(std::memory_order_seq_cst) != 0) ring_bell();
  }
  /// The same after this thread wrote words elsewhere, which the look must not overtake. `fenced`: see RingProducer.
  void ring_if_asleep_behind_words(bool fenced) noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const bool asleep = fenced ? head().asleep.fetch_or(0, std::memory_order_seq_cst) != 0
                               : head().asleep.load(std::memory_order_seq_cst) != 0;
    if (asleep) ring_bell();
  }

 private:
  Inbox(MappedFile memory, std::uint32_t places) noexcept : memory_(std::move(memory)), places_(places) {}
  [[nodiscard]] InboxHead& head() const noexcept { return *reinterpret_cast<InboxHead*>(memory_.bytes().data()); }
  void ring_bell() noexcept;

  MappedFile memory_;
  std::uint32_t places_;
  UniqueFd listening_end_;  ///< Of the bell's pipe; the owner's only.
  UniqueFd ringing_end_;
};

}  // namespace brant::port::peer
