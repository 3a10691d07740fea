#pragma once

#include <chrono>
#include <functional>

#include "models/chare/running.h"

namespace brant::detail {

/// What a process does next: moves the network, empties outboxes, runs messages; and holds back who sends too much.
class Scheduler {
 public:
  Scheduler(const ProgramContext& context, Activity& activity, Collections& collections, const Messages& messages,
            Sending& sending, ReadyQueue& queue, Ending& ending, Answers& answers, WaitReport& report, Quiet& quiet,
            Running& running) noexcept;

  /// Returns how much happened.
  unsigned step();
  void run_until_ended();
  /// Sleeps until there is something for `step` to do, `until` holds (null: never), or so much time is over.
  void wait(const std::function<bool()>& until, std::chrono::nanoseconds longest);
  /// For who sleeps elsewhere; 0: there is something to do.
  [[nodiscard]] std::chrono::nanoseconds longest_sleep() const noexcept;
  /// Before a call is packed: holds the caller back while too much is undelivered. Throws limit_reached.
  void make_room() {
    if (messages_.full()) [[unlikely]]
      hold_back();
  }

 private:
  void hold_back();
  [[nodiscard]] bool has_work() const noexcept;
  [[nodiscard]] std::chrono::nanoseconds patience() const noexcept;
  bool run_others(am::MessageList& set_aside);
  bool may_run_nested(const am::Message& message);
  void look_at_troubles();
  void look_at_lanes();

  const ProgramContext& context_;
  Activity& activity_;
  Collections& collections_;
  const Messages& messages_;
  Sending& sending_;
  ReadyQueue& queue_;
  Ending& ending_;
  Answers& answers_;
  WaitReport& report_;
  Quiet& quiet_;
  Running& running_;
};

}  // namespace brant::detail
