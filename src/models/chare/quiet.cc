#include "models/chare/quiet.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/seconds.h"
#include "models/chare/wait_report.h"

namespace brant::detail {

Quiet::Quiet(const ProgramContext& context, const Activity& activity, const ReadyQueue& queue, Sending& sending,
             Ending& ending, WaitReport& report) noexcept
    : context_(context),
      activity_(activity),
      queue_(queue),
      sending_(sending),
      ending_(ending),
      report_(report),
      deadlock_after_(context.options.deadlock_after) {}

Stillness Quiet::stillness() noexcept {
  Stillness here{activity_.wire_sent,
                 activity_.wire_taken,
                 activity_.ran,
                 activity_.data_started,
                 activity_.data_ended,
                 context_.channels.traffic(),
                 false,
                 false,
                 false};
  if (here.channels.moves != channel_moves_ || channels_still_since_ == 0) {
    channel_moves_ = here.channels.moves;
    channels_still_since_ = coarse_now();
  }
  const auto settle_time =
      context_.options.deadlock_after.count() > 0 ? context_.options.deadlock_after : std::chrono::seconds(1);
  here.settled = coarse_now() - channels_still_since_ >= std::chrono::nanoseconds(settle_time).count();
  here.idle = queue_.empty() && !sending_.holds() && activity_.running == 0 && activity_.hold_depth == 0 &&
              !ending_.leaving() && context_.lanes.sources_idle() && !context_.engine.completions().due();
  if (here.idle && context_.options.has_other_work) here.idle = !context_.options.has_other_work();
  // An operation that is no channel's may end by itself.
  here.stuck = here.idle && !context_.engine.sleeping().process_goes_on() &&
               context_.engine.completions().pending() <= context_.channels.live();
  return here;
}

std::chrono::nanoseconds Quiet::patience() const noexcept {
  if (!waiting_.empty()) return pause_;
  return deadlock_after_ > std::chrono::nanoseconds::zero() ? std::max(deadlock_after_ / 4, kShortestPause)
                                                            : Worker::kForever;
}

void Quiet::look() {
  if (missing_ != 0 || (waiting_.empty() && deadlock_after_ <= std::chrono::nanoseconds::zero())) return;
  // Every idle step comes here: while nobody waits for quiescence, a clock of milliseconds will do.
  const TimePoint now = waiting_.empty() ? TimePoint(std::chrono::nanoseconds(coarse_now())) : Clock::now();
  const Stillness here = stillness();
  const std::uint64_t activity = here.sent + here.taken + here.ran + here.channels.moves;
  if (activity != last_activity_ || idle_since_ == TimePoint{}) {
    last_activity_ = activity;
    idle_since_ = now;
    if (waiting_.empty()) {
      pause_ = deadlock_after_;
      next_wave_ = {};
    }
  }
  if (now < next_wave_) return;
  if (waiting_.empty() && now - idle_since_ < deadlock_after_) return;
  had_previous_ = false;
  start_wave(false);
}

void Quiet::start_wave(bool detailed) {
  sum_ = {};
  ends_.clear();
  detailed_ = detailed;
  missing_ = context_.ranks;
  const std::uint64_t code = ++wave_ << 1 | (detailed ? 1 : 0);
  sending_.spread(MessageKind::wave, static_cast<std::int64_t>(code));
  answer(code);
}

void Quiet::answer(std::uint64_t code) {
  WaveAnswer answer{stillness(), {}};
  if ((code & 1) != 0) answer.ends = context_.channels.ends();
  if (context_.rank == 0) return take_answer(code, answer);
  sending_.send_value(0, MessageKind::wave_answer, code, answer);
}

void Quiet::take_answer(std::uint64_t code, const WaveAnswer& theirs) {
  if (code >> 1 != wave_ || ending_.leaving()) return;
  sum_.add(theirs.stillness);
  ends_.insert(ends_.end(), theirs.ends.begin(), theirs.ends.end());
  if (--missing_ == 0) judge();
}

void Quiet::judge() {
  const bool unchanged = had_previous_ && sum_.balanced() && sum_.same_counts(previous_);
  if (!unchanged && sum_.balanced() && !detailed_) {
    previous_ = sum_;
    had_previous_ = true;
    return start_wave(false);
  }
  bool proven = unchanged && sum_.channels_clear();
  if (unchanged && !proven && sum_.settled && sum_.channels.withdrawing == 0) {
    if (!detailed_) return start_wave(true);
    proven = nothing_comes(std::move(ends_));
  }
  if (proven && !waiting_.empty()) return tell();
  if (proven && sum_.stuck && ending_.main_waits()) {
    reporting_ = true;
    lines_.clear();
    missing_ = context_.ranks;
    sending_.spread(MessageKind::report_asked, 0);
    return answer_report();
  }
  // Some rank is at work, or waits for a timer or the network: the longer it does, the less it is asked.
  next_wave_ = Clock::now() + pause_;
  pause_ = std::min(pause_ * 2, waiting_.empty() ? deadlock_after_ * kDeadlockPauseMax : kLongestPause);
}

void Quiet::tell() {
  const std::vector<Callback<>> due = std::move(waiting_);
  waiting_.clear();
  idle_since_ = {};
  for (const Callback<>& to : due) to();
}

void Quiet::answer_report() {
  std::vector<std::string> lines = report_.lines();
  if (context_.rank == 0) return take_report(lines);
  sending_.send_value(0, MessageKind::report, 0, lines);
}

void Quiet::take_report(const std::vector<std::string>& lines) {
  if (!reporting_ || ending_.leaving()) return;
  for (const std::string& line : lines) {
    if (lines_.size() < WaitReport::kLinesMax) {
      lines_.push_back(line);
    } else {
      ++left_out_;
    }
  }
  if (--missing_ != 0) return;
  reporting_ = false;
  std::string text = fmt::format(
      "deadlock: nothing can run any more on any of the {} ranks, for {:.1f} s, and the program has not ended. Who "
      "waits:",
      context_.ranks, in_seconds(Clock::now() - idle_since_));
  for (const std::string& line : lines_) text += "\n  " + line;
  if (left_out_ != 0) text += fmt::format("\n  and {} lines of other ranks", left_out_);
  text +=
      "\nEither a call, a contribution or an exit is missing, or what is awaited comes from outside the program's "
      "messages: then set ChareOptions::deadlock_after to 0.";
  ending_.fail_job(text);
}

}  // namespace brant::detail
