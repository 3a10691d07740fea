#include "models/chare/wait_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "base/seconds.h"
#include "brant/chare/detail/running.h"
#include "models/chare/gatherings.h"
#include "models/chare/mail.h"

namespace brant::detail {
namespace {

constexpr std::size_t kLinesPerRankMax = 12;
constexpr std::size_t kLineMax = 400;

double seconds_since(std::int64_t begin) noexcept { return static_cast<double>(coarse_now() - begin) / 1e9; }

/// "halo(5)" or "halo(5), go()"; empty without whens. `since` becomes the earliest.
std::string whens_of(const ChareBase& chare, std::int64_t& since) {
  const Mail* mail = Mail::find(chare);
  std::string text;
  if (mail == nullptr) return text;
  int count = 0;
  for (const WhenWaiter* waiter = mail->waiters.front(); waiter != nullptr; waiter = mail->waiters.next(*waiter)) {
    if (++count > 4) {
      text += ", ...";
      break;
    }
    if (!text.empty()) text += ", ";
    text += waiter->describe(*waiter);
    since = std::min(since, waiter->since);
  }
  return text;
}

std::string kept_by(const ChareBase& chare) {
  const Mail* mail = Mail::find(chare);
  std::string text;
  if (mail == nullptr) return text;
  for (const Mail::Box& box : mail->boxes) {
    if (box.size() != 0) text += fmt::format("{}{} calls of {}", text.empty() ? "" : ", ", box.size(), box.entry->name);
  }
  return text;
}

std::string message_of(const ChannelWait& wait) {
  if (!wait.is_send) return fmt::format("message {}", wait.number);
  if (wait.held_back) return fmt::format("room for a message of {} bytes", wait.bytes);
  return fmt::format("a receive of its message {} ({} bytes)", wait.number, wait.bytes);
}

}  // namespace

WaitReport::WaitReport(const ProgramContext& context, const Activity& activity, Collections& collections,
                       const ReadyQueue& queue, const DataCalls& data_calls, const Sending& sending,
                       const Ending& ending, const ChannelDesk& desk, const Answers& answers,
                       const Latecomers& latecomers, const Enrolment& enrolment) noexcept
    : context_(context),
      activity_(activity),
      collections_(collections),
      queue_(queue),
      data_calls_(data_calls),
      sending_(sending),
      ending_(ending),
      desk_(desk),
      answers_(answers),
      latecomers_(latecomers),
      enrolment_(enrolment) {}

/// Of channels that are no chares' the lines go to `others`.
WaitReport::ChannelWaitsOf WaitReport::channel_waits(std::vector<std::string>& others) {
  constexpr int kNamedMax = 3;
  ChannelWaitsOf waits;
  const auto add = [&](const Target& who, std::string text, std::int64_t since) {
    const Collection* collection = collections_.find(who.collection);
    const ChareBase* chare = collection != nullptr ? collection->find(who.key) : nullptr;
    if (chare == nullptr) return;
    ChannelWaits& of = waits[chare];
    of.since = of.count == 0 ? since : std::min(of.since, since);
    if (++of.count > kNamedMax + 1) return;
    if (of.count > kNamedMax) text = "...";
    of.text += (of.text.empty() ? "" : ", ") + text;
  };
  for (const ChannelWait& wait : context_.channels.waits()) {
    const std::string message = message_of(wait);
    const std::int64_t since = wait.since.time_since_epoch().count();
    if (const ChannelDesk::Names* names = desk_.names(wait.channel, wait.side)) {
      add(names->mine,
          fmt::format("{} on its channel with {} (channel {} to rank {})", message, collections_.name_of(names->theirs),
                      wait.channel, wait.peer),
          since);
    } else {
      others.push_back(fmt::format("{} on rank {} waits for {} on channel {} with rank {}, since {:.1f} s",
                                   wait.is_send ? "a send" : "a receive", context_.rank, message, wait.channel,
                                   wait.peer, seconds_since(since)));
    }
  }
  for (const ChannelDesk::Unmet& unmet : desk_.unmet()) {
    add(unmet.names.mine,
        fmt::format("{} to open a channel with it (number {})", collections_.name_of(unmet.names.theirs), unmet.number),
        unmet.since);
  }
  return waits;
}

void WaitReport::describe_chare(const Collection& collection, const ChareBase& chare, const ChannelWaitsOf& channels,
                                std::vector<std::string>& lines) const {
  const RunningTask* task = Collection::first_task(chare);
  const std::string kept = kept_by(chare);
  const auto channel = channels.find(&chare);
  if (task == nullptr && kept.empty() && channel == channels.end()) return;
  const std::string name = collection.name_of(Collection::key_of(chare));
  std::int64_t since = coarse_now();
  std::string whens = whens_of(chare, since);
  if (!whens.empty()) whens = "when " + whens;
  if (channel != channels.end()) {
    whens += (whens.empty() ? "" : " and for ") + channel->second.text;
    since = std::min(since, channel->second.since);
  }
  if (task == nullptr && channel != channels.end()) {
    lines.push_back(
        fmt::format("{} on rank {} waits for {}, since {:.1f} s", name, context_.rank, whens, seconds_since(since)));
  }
  if (task == nullptr) {
    if (!kept.empty())
      lines.push_back(fmt::format("{} on rank {} keeps {} that no when has taken", name, context_.rank, kept));
    return;
  }
  if (whens.empty()) since = task->since;
  std::size_t others = 0;
  for (const RunningTask* next = task->next; next != nullptr; next = next->next) ++others;
  std::string line =
      fmt::format("{}::{} on rank {} waits for {}, since {:.1f} s", name, task->invocation.entry->name, context_.rank,
                  whens.empty() ? "a reply, a reduction or a future" : whens, seconds_since(since));
  if (others != 0) line += fmt::format(" ({} more coroutines of it wait)", others);
  if (!kept.empty()) line += fmt::format("; it keeps {} that do not match", kept);
  lines.push_back(line);
}

std::vector<std::string> WaitReport::lines() {
  // A share of the report for each rank of a large job.
  const std::size_t limit =
      std::clamp<std::size_t>(kLinesMax / static_cast<std::size_t>(context_.ranks), 2, kLinesPerRankMax);
  std::vector<std::string> lines;
  if (ending_.has_main()) lines.push_back("the main task on rank 0");
  if (std::string late = enrolment_.describe(); !late.empty()) lines.push_back(std::move(late));
  collections_.gatherings().describe(lines, limit);
  std::size_t more = 0;
  const auto put = [&](const std::vector<std::string>& found) {
    if (lines.size() >= limit) {
      more += found.size();
    } else {
      lines.insert(lines.end(), found.begin(), found.end());
    }
  };
  std::vector<std::string> others;
  const ChannelWaitsOf channels = channel_waits(others);
  for (const auto& [id, collection] : collections_.all()) {
    for (const ChareBase* chare : collection->slots()) {
      if (chare == nullptr || chare == &collections_.gatherings()) continue;
      std::vector<std::string> found;
      describe_chare(*collection, *chare, channels, found);
      put(found);
    }
  }
  for (const std::string& other : others) put({other});
  std::size_t shown = 0;
  answers_.waiting().for_each([&](const WaitingCalls::Entry& waiting) {
    if (++shown > 4) {
      ++more;
    } else if (waiting.entry->owner == kCallbackOwner) {
      lines.push_back(fmt::format("the future of a callback on rank {}, since {:.1f} s", context_.rank,
                                  seconds_since(waiting.since)));
    } else {
      lines.push_back(fmt::format("the future of {}::{} (rank {}) on rank {}, since {:.1f} s",
                                  collections_.name_of(waiting.target), waiting.entry->name, waiting.rank,
                                  context_.rank, seconds_since(waiting.since)));
    }
  });
  if (std::string lost = first_undelivered(); !lost.empty() && activity_.kept == 0) {
    lines.push_back(fmt::format("undelivered: {}", lost));
  }
  if (more != 0) lines.push_back(fmt::format("and {} more on rank {}", more, context_.rank));
  for (std::string& line : lines) {
    if (line.size() > kLineMax) line = line.substr(0, kLineMax) + "...";
  }
  return lines;
}

std::string WaitReport::describe(const am::Message& message, const char* state) {
  const auto envelope = message.header<Envelope>();
  const auto* entry = context_.registry.find<EntryInfo>(envelope.number, RegisteredKind::entry);
  const std::string method = entry != nullptr ? std::string(entry->name) : "?";
  if (envelope.kind == MessageKind::broadcast || envelope.kind == MessageKind::multicast) {
    return fmt::format("a {} of {} on rank {}{}",
                       envelope.kind == MessageKind::broadcast ? "broadcast" : "call of a section,", method,
                       context_.rank, state);
  }
  return fmt::format("{}::{} on rank {}{}", collections_.name_of({envelope.collection, key_of(message, envelope)}),
                     method, context_.rank, state);
}

std::string WaitReport::first_undelivered() {
  const auto is_call = [](const am::Message& message) { return message.header<Envelope>().counted(); };
  if (const am::Message* message = queue_.find(is_call)) return describe(*message, "");
  if (activity_.kept != 0) return first_kept(collections_.all());
  for (const auto& [id, collection] : collections_.all()) {
    for (const auto& [key, list] : collection->waiting) {
      if (list.front() != nullptr) return describe(*list.front(), ", which was never inserted");
    }
  }
  if (const DataCall* call = data_calls_.first_coming())
    return describe(*call->message, ", whose data is still coming");
  if (const am::Message* call = latecomers_.first_uncreated_call()) return describe(*call, ", which was never made");
  if (const am::Message* call = latecomers_.first_undefined()) {
    return describe(*call, ", whose section was never made");
  }
  if (const am::Message* message = enrolment_.first_parked(); message != nullptr && is_call(*message)) {
    return describe(*message, ", which nobody has enrolled there");
  }
  if (const am::Message* call = sending_.first_held_call()) return describe(*call, ", not sent yet");
  return {};
}

bool WaitReport::stalled(std::chrono::nanoseconds idle) noexcept {
  try {
    const std::vector<std::string> lines = ending_.leaving() ? std::vector<std::string>{} : this->lines();
    if (lines.empty()) return false;
    std::string text =
        fmt::format("nothing has moved on rank {} for {:.1f} s. Who waits here:", context_.rank, in_seconds(idle));
    for (const std::string& line : lines) text += "\n  " + line;
    if (const TimePoint next = context_.engine.timers().next(); next != kNever) {
      text += fmt::format("\nThe next timer of this rank fires in {:.1f} s", in_seconds(next - Clock::now()));
    }
    log::warn("{}", text);
  } catch (const std::bad_alloc&) {
    log::warn("nothing has moved on rank {}, and no memory is left to say who waits", context_.rank);
  }
  return true;
}

}  // namespace brant::detail
