#pragma once

#include <cstdint>

namespace brant {

/// Where a send or a receive stands. `may_become` is the table of what may follow what; debug builds end a process that
/// does otherwise.
enum class TransferState : std::uint8_t {
  begun,         ///< Not with anybody yet.
  staging,       ///< A device copies it to or from a pinned buffer, or out of a slot.
  network,       ///< The network has it.
  carried,       ///< The bytes have gone or come, or never will.
  held_back,     ///< Send: the window has no room.
  eager,         ///< Send: its record waits for room.
  pieces,        ///< Send: it goes piece by piece.
  asking,        ///< Send: waits for word of its landing, or for being taken if it was offered.
  copying,       ///< Send: a device writes it into its landing, or into a slot.
  awaiting_ack,  ///< Send: wants to know when it has landed.
  posted,        ///< Receive: its sender need not know of it.
  announced,     ///< Receive: its sender was told of it.
  retracting,    ///< Receive: its sender was asked to forget it.
  landing,       ///< Receive: pieces come in.
  pulling,       ///< Receive: it is being copied from its sender's memory.
};

/// A receive whose sender was told of its landing may get pieces in it, or have it written into by a device.
[[nodiscard]] constexpr bool is_told(TransferState state) noexcept {
  return state == TransferState::announced || state == TransferState::retracting;
}

/// Of a receive: its bytes come in.
[[nodiscard]] constexpr bool is_coming(TransferState state) noexcept {
  return state == TransferState::landing || state == TransferState::pulling;
}

/// Of a send: the link, a device or the network works on it.
[[nodiscard]] constexpr bool is_on_its_way(TransferState state) noexcept {
  return state == TransferState::network || state == TransferState::eager || state == TransferState::pieces ||
         state == TransferState::asking || state == TransferState::copying;
}

namespace detail {

constexpr std::uint32_t any_of(auto... states) noexcept { return (0u | ... | (1u << static_cast<unsigned>(states))); }

constexpr std::uint32_t after_send(TransferState state) noexcept {
  using enum TransferState;
  constexpr std::uint32_t kOnItsWay = any_of(eager, pieces, asking, copying, network, carried);
  switch (state) {
    case begun: return any_of(held_back, staging) | kOnItsWay;
    case held_back: return any_of(begun);
    case staging: return any_of(asking) | kOnItsWay;
    case asking: return any_of(staging, pieces, copying, network, carried);
    case copying: return any_of(asking, carried);
    case eager:
    case pieces:
    case network: return any_of(carried);
    case carried: return any_of(awaiting_ack);
    default: return 0;
  }
}

constexpr std::uint32_t after_receive(TransferState state) noexcept {
  using enum TransferState;
  switch (state) {
    case begun: return any_of(posted, network, carried, staging);
    case posted: return any_of(announced, pulling, carried);
    case announced: return any_of(retracting, landing, pulling, carried);
    case retracting: return any_of(landing, pulling, carried);
    case landing:
    case pulling:
    case network: return any_of(carried);
    case carried: return any_of(network, staging);
    case staging: return any_of(carried);
    default: return 0;
  }
}

}  // namespace detail

[[nodiscard]] constexpr bool may_become(bool is_send, TransferState from, TransferState to) noexcept {
  return ((is_send ? detail::after_send(from) : detail::after_receive(from)) >> static_cast<unsigned>(to) & 1u) != 0;
}

}  // namespace brant
