// Who waits for what on this rank: for the report of a deadlock.
#include <algorithm>

#include <fmt/format.h>

#include "brant/chare/detail/running.h"
#include "models/chare/core.h"
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

}  // namespace

void Core::describe_chare(const Collection& collection, const ChareBase& chare, std::vector<std::string>& lines) const {
  const RunningTask* task = Collection::first_task(chare);
  const std::string kept = kept_by(chare);
  if (task == nullptr && kept.empty()) return;
  const std::string name = collection.name_of(Collection::key_of(chare));
  std::int64_t since = coarse_now();
  const std::string whens = whens_of(chare, since);
  if (task == nullptr) {
    lines.push_back(fmt::format("{} on rank {} keeps {} that no when has taken", name, rank_, kept));
    return;
  }
  if (whens.empty()) since = task->since;
  std::size_t others = 0;
  for (const RunningTask* next = task->next; next != nullptr; next = next->next) ++others;
  std::string line =
      fmt::format("{}::{} on rank {} waits for {}, since {:.1f} s", name, task->invocation.entry->name, rank_,
                  whens.empty() ? "a reply, a reduction or a future" : "when " + whens, seconds_since(since));
  if (others != 0) line += fmt::format(" ({} more coroutines of it wait)", others);
  if (!kept.empty()) line += fmt::format("; it keeps {} that do not match", kept);
  lines.push_back(line);
}

std::vector<std::string> Core::describe_waits() {
  // A share of the report for each rank of a large job.
  const std::size_t limit =
      std::clamp<std::size_t>(kReportLinesMax / static_cast<std::size_t>(ranks_), 2, kLinesPerRankMax);
  std::vector<std::string> lines;
  if (main_.has_value()) lines.push_back("the main task on rank 0");
  teams_->describe(lines, limit);
  std::size_t more = 0;
  for (const auto& [id, collection] : collections_) {
    for (const ChareBase* chare : collection->slots()) {
      if (chare == nullptr || chare == teams_) continue;
      std::vector<std::string> found;
      describe_chare(*collection, *chare, found);
      if (lines.size() >= limit) {
        more += found.size();
      } else {
        lines.insert(lines.end(), found.begin(), found.end());
      }
    }
  }
  std::size_t shown = 0;
  replies_.for_each([&](const ReplyTable::Entry& waiting) {
    if (++shown > 4) {
      ++more;
    } else if (waiting.entry->owner == kCallbackOwner) {
      lines.push_back(
          fmt::format("the future of a callback on rank {}, since {:.1f} s", rank_, seconds_since(waiting.since)));
    } else {
      lines.push_back(fmt::format("the future of {}::{} (rank {}) on rank {}, since {:.1f} s", name_of(waiting.target),
                                  waiting.entry->name, waiting.rank, rank_, seconds_since(waiting.since)));
    }
  });
  if (std::string lost = first_undelivered(); !lost.empty() && kept_ == 0) {
    lines.push_back(fmt::format("undelivered: {}", lost));
  }
  if (more != 0) lines.push_back(fmt::format("and {} more on rank {}", more, rank_));
  for (std::string& line : lines) {
    if (line.size() > kLineMax) line = line.substr(0, kLineMax) + "...";
  }
  return lines;
}

}  // namespace brant::detail
