#include "cli/jobs/team_page.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "ops/coll/device/stream_plan.h"
#include "ops/coll/journal_page.h"
#include "ops/coll/plan.h"

namespace brant::cli::jobs {
namespace {

using coll::JournalEntry;
using coll::JournalPage;

/// Of numbers that another process wrote, and may have been writing meanwhile.
std::string algorithm_of(std::uint8_t number, bool of_streams) {
  const auto last = of_streams ? static_cast<std::uint8_t>(coll::StreamAlgorithm::slices)
                               : static_cast<std::uint8_t>(coll::Algorithm::pairwise);
  if (number > last) return "unknown";
  return std::string(of_streams ? coll::stream_algorithm_name(static_cast<coll::StreamAlgorithm>(number))
                                : coll::algorithm_name(static_cast<coll::Algorithm>(number)));
}

SeenCall seen(const JournalEntry& entry, std::uint64_t number, bool of_streams) {
  return {.number = number,
          .what = coll::describe(entry.words()),
          .algorithm = algorithm_of(entry.algorithm, of_streams),
          .status = static_cast<Status>(entry.status),
          .begun_ns = entry.begun_ns,
          .ended_ns = entry.ended_ns};
}

/// The calls with the numbers (hidden, last] that are still there.
template <std::size_t kPlaces>
std::vector<SeenCall> calls_in(const JournalEntry (&entries)[kPlaces], std::uint64_t hidden, std::uint64_t last,
                               bool of_streams) {
  std::vector<SeenCall> calls;
  const std::uint64_t count = std::min<std::uint64_t>(last - hidden, kPlaces);
  for (std::uint64_t number = last - count + 1; number <= last; ++number)
    calls.push_back(seen(entries[number % kPlaces], number - hidden, of_streams));
  return calls;
}

bool is_sound(const JournalPage& page) noexcept {
  return page.magic == JournalPage::kMagic && std::memchr(page.name, '\0', sizeof(page.name)) != nullptr &&
         page.self < page.members && page.hidden <= page.last && page.awaits <= page.members &&
         page.kernel_awaits < page.members;
}

}  // namespace

std::optional<TeamPage> parse_team_page(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(JournalPage)) return std::nullopt;
  JournalPage page;
  std::memcpy(static_cast<void*>(&page), bytes.data(), sizeof(page));
  if (!is_sound(page)) return std::nullopt;
  TeamPage told;
  told.key = page.key;
  told.name = page.name;
  told.members = page.members;
  told.self = page.self;
  told.rank = page.rank;
  told.calls = calls_in(page.calls, page.hidden, page.last, false);
  if (page.awaits != 0) told.awaits = page.awaits - 1;
  told.fault = static_cast<Status>(page.fault);
  told.queued = calls_in(page.of_streams, 0, page.stream_calls, true);
  told.kernel_call = page.kernel_call;
  told.kernel_awaits = page.kernel_awaits;
  return told;
}

}  // namespace brant::cli::jobs
