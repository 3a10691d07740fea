#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "bench/runner/options.h"

namespace brant::bench {

inline constexpr std::size_t kReplyBytes = 4;  ///< What answers a window of messages.

/// Something that moves messages between this process and its partner. Both run the same call at the same time. One
/// virtual call per batch, none per message.
class Contender {
 public:
  Contender() = default;
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;
  virtual ~Contender() = default;

  /// Name of a rival as it stands in the field `peer` of rows; empty for brant.
  [[nodiscard]] virtual std::string peer() const = 0;
  /// Of a rival, where no other field of rows has it.
  [[nodiscard]] virtual std::string peer_version() const { return {}; }
  /// The path that the latest batch took.
  [[nodiscard]] virtual std::string path() const = 0;

  /// Who starts its transfers.
  [[nodiscard]] virtual Trigger trigger() const { return Trigger::host; }

  /// `times` round trips or windows as they are measured, every byte looked at. Rivals have nothing to prove here.
  /// Throws Error naming the first wrong byte.
  virtual void check(std::size_t bytes, std::size_t times) {
    static_cast<void>(bytes);
    static_cast<void>(times);
  }
  /// One round trip per entry. The entries are meaningful at the side that leads. Throws Error.
  virtual void ping_pong(std::size_t bytes, std::span<double> round_trip_us) = 0;
  /// One window per entry: `window` messages, then a reply of 4 bytes; or of Kind::bidirectional `window` messages each
  /// way. Throws Error.
  virtual void windows(std::size_t bytes, std::size_t window, std::span<double> window_us) = 0;
};

}  // namespace brant::bench
