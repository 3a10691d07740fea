#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "brant/base/clock.h"
#include "brant/chare/callback.h"
#include "ops/channel/traffic.h"

namespace brant::detail {

class Ending;
class ReadyQueue;
class Sending;
class WaitReport;
struct Activity;
struct ProgramContext;

/// What one rank says of itself, or all together.
struct Stillness {
  std::uint64_t sent = 0;   ///< Messages to other ranks, those of the ending not counted,
  std::uint64_t taken = 0;  ///< and those that came from them.
  std::uint64_t ran = 0;    ///< Messages run.
  std::uint64_t data_started = 0, data_ended = 0;
  ChannelTraffic channels;
  bool idle = true;     ///< Nothing is queued, held back or on the stack.
  bool stuck = true;    ///< And no timer or device event is pending.
  bool settled = true;  ///< For `deadlock_after` no channel has moved.

  void add(const Stillness& other) noexcept {
    sent += other.sent;
    taken += other.taken;
    ran += other.ran;
    data_started += other.data_started;
    data_ended += other.data_ended;
    channels.sent += other.channels.sent;
    channels.received += other.channels.received;
    channels.moves += other.channels.moves;
    channels.sending += other.channels.sending;
    channels.withdrawing += other.channels.withdrawing;
    idle = idle && other.idle;
    stuck = stuck && other.stuck;
    settled = settled && other.settled;
  }
  /// No message of chares is under way, if the ranks had answered at one moment.
  [[nodiscard]] bool balanced() const noexcept { return idle && sent == taken && data_started == data_ended; }
  /// Nor one of a channel. False does not say that one is: it may have no receive.
  [[nodiscard]] bool channels_clear() const noexcept {
    return channels.sent == channels.received && channels.sending == 0 && channels.withdrawing == 0;
  }
  [[nodiscard]] bool same_counts(const Stillness& other) const noexcept {
    return sent == other.sent && taken == other.taken && ran == other.ran && data_started == other.data_started &&
           channels.moves == other.channels.moves;
  }
};

/// A rank's answer to a wave.
struct WaveAnswer {
  Stillness stillness;
  std::vector<ChannelEnd> ends;  ///< If the wave asked for them.
  void serialize(auto& archive) { archive(stillness, ends); }
};

/// Finds out when nothing is under way on any rank: for `quiescence`, and for the report when a program cannot go on.
/// Rank 0 asks all ranks (a wave) while it is idle itself; two waves in a row that are balanced and find the same
/// counts prove that nothing ran or flew in between. Ranks answer from inside progress; one whose entry is on the stack
/// answers that it is not idle. Waves start only while somebody waits for quiescence, or when rank 0 has been idle for
/// `ChareOptions::deadlock_after`; a wave that finds others busy makes the pause before the next one longer.
///
/// Channels: a receive that waits keeps nothing alive, a message does that somebody receives or will. The rule, for
/// quiescence and deadlock alike: as many messages have been received as were sent, over all channels and ranks, and no
/// send or withdrawal is unfinished; then whatever receives are posted, nothing comes. If that fails, messages are on
/// their way, or they have no receive (then their sends do not count, nor those that wait for them). Only when no rank
/// has seen a channel move for `deadlock_after` is this found out: a *detailed* wave collects the accounts of all ends,
/// and `nothing_comes` compares the two ends of each. The pause is for what has no number: acknowledgements under way,
/// and sends without a receive that the network ends by itself.
class Quiet {
 public:
  Quiet(const ProgramContext& context, const Activity& activity, const ReadyQueue& queue, Sending& sending,
        Ending& ending, WaitReport& report) noexcept;

  /// Rank 0: fired once, when all is quiet.
  void await(const Callback<>& to) {
    waiting_.push_back(to);
    next_wave_ = {};
    pause_ = kShortestPause;
  }
  /// Rank 0, in an idle step.
  void look();
  /// How long rank 0 may sleep before the next look.
  [[nodiscard]] std::chrono::nanoseconds patience() const noexcept;

  // --- control messages
  void answer(std::uint64_t code);
  void take_answer(std::uint64_t wave, const WaveAnswer& theirs);
  void answer_report();
  void take_report(const std::vector<std::string>& lines);

 private:
  static constexpr std::chrono::nanoseconds kShortestPause = std::chrono::microseconds(20);
  static constexpr std::chrono::nanoseconds kLongestPause = std::chrono::milliseconds(1);
  static constexpr int kDeadlockPauseMax = 16;  ///< Times `deadlock_after`.

  [[nodiscard]] Stillness stillness() noexcept;
  void start_wave(bool detailed);
  void judge();
  void tell();

  const ProgramContext& context_;
  const Activity& activity_;
  const ReadyQueue& queue_;
  Sending& sending_;
  Ending& ending_;
  WaitReport& report_;
  const std::chrono::nanoseconds deadlock_after_;
  std::vector<Callback<>> waiting_;
  std::uint64_t wave_ = 0;
  int missing_ = 0;  ///< Answers to the wave, or to the question for a report, that is under way.
  bool reporting_ = false;
  bool had_previous_ = false;
  bool detailed_ = false;  ///< The wave under way.
  Stillness sum_, previous_;
  std::vector<ChannelEnd> ends_;
  std::vector<std::string> lines_;
  std::size_t left_out_ = 0;
  std::uint64_t last_activity_ = 0;
  std::uint64_t channel_moves_ = 0;        ///< When `stillness` last looked,
  std::int64_t channels_still_since_ = 0;  ///< and since when that is so.
  TimePoint idle_since_{};
  TimePoint next_wave_{};
  std::chrono::nanoseconds pause_ = kShortestPause;
};

}  // namespace brant::detail
