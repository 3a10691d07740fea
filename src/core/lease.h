#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "brant/base/clock.h"

namespace brant {

/// Decides which processes of other hosts are lost (docs/decisions/0025): whoever is watched must answer one of the
/// pings of each lease. Fed with time and datagrams; has no socket, no thread and no clock of its own. A verdict is
/// final, and told to whom it concerns if that one is ever heard again.
///
/// Time is what this process was awake to see: when it was stopped, or had no processor, that counts against nobody.
class Lease {
 public:
  using Key = std::array<std::byte, 32>;
  static constexpr std::size_t kDatagramBytes = 40;
  using Datagram = std::array<std::byte, kDatagramBytes>;
  struct Outgoing {
    int rank;
    Datagram datagram;
  };
  enum class Why : std::uint8_t {
    silent,          ///< It has answered before, but no ping of a whole lease.
    never_answered,  ///< Not a single ping, though others answer.
    refused,         ///< Its host lives and says that nobody listens there any more.
    told,            ///< It has given this process up.
  };
  struct Verdict {
    int rank;
    Why why;
  };

  /// `patience` is the lease, more than 0.
  Lease(int self, int size, std::chrono::nanoseconds patience, const Key& key);

  /// From now on. May be repeated.
  void watch(int rank) noexcept;
  /// Asks this one, until anybody has answered, whether datagrams get through at all.
  void probe(int rank) noexcept { probed_ = rank; }
  /// It was found lost by other means: it will be told so.
  void give_up(int rank) noexcept;

  /// Returns what is to be answered. What was not made by a process of this job, or was heard before, is counted and
  /// has no effect.
  std::optional<Outgoing> hear(std::span<const std::byte> datagram) noexcept;
  /// The host of a rank says that nobody listens at its address.
  void refused(int rank) noexcept;

  /// To be called at `next`, after all that has come was heard. Judges, and returns the pings that are due; valid until
  /// the next call.
  std::span<const Outgoing> tick(TimePoint now) noexcept;
  [[nodiscard]] TimePoint next() const noexcept;

  /// Since the last call.
  std::vector<Verdict> take_verdicts();
  /// For a whole lease nobody has answered anything, from the start on: then silence proves nothing, and nobody is lost
  /// by it.
  [[nodiscard]] bool deaf() const noexcept { return !heard_any_ && awake_ >= patience_; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
  [[nodiscard]] std::chrono::nanoseconds period() const noexcept { return period_; }

 private:
  enum class Kind : std::uint32_t { ping = 1, answer, verdict };
  struct Watched {
    int rank;
    std::chrono::nanoseconds alive;  ///< When the newest ping left that it has answered.
    bool heard = false;
    std::optional<std::chrono::nanoseconds> refused;  ///< Since when, without an answer after it.
  };

  Datagram make(Kind kind, int to, std::chrono::nanoseconds stamp) const noexcept;
  [[nodiscard]] bool authentic(std::span<const std::byte> datagram) const noexcept;
  [[nodiscard]] bool may_be_peer(int rank) const noexcept;
  Watched* find(int rank) noexcept;
  bool take_answer(int rank, std::chrono::nanoseconds stamp) noexcept;
  void ears_open() noexcept;
  void lose(int rank, Why why) noexcept;

  const int self_;
  const std::chrono::nanoseconds patience_;
  const std::chrono::nanoseconds period_;
  const Key key_;
  std::chrono::nanoseconds awake_{0};
  std::optional<TimePoint> last_tick_;
  std::optional<int> probed_;
  bool heard_any_ = false;
  std::vector<bool> lost_;         ///< By rank.
  std::vector<Watched> watched_;   ///< Without those that are lost.
  std::vector<Outgoing> due_;      ///< What `tick` returned.
  std::vector<Verdict> verdicts_;  ///< That nobody took yet.
  std::uint64_t dropped_ = 0;
};

}  // namespace brant
