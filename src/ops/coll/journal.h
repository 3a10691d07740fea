#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "brant/coll/team.h"
#include "core/observe/published_pages.h"
#include "ops/coll/journal_page.h"
#include "ops/coll/plan.h"
#include "ops/coll/work.h"

namespace brant::coll {

/// The last calls of a member. They lie where other processes read them, if they may.
class Journal {
 public:
  static constexpr std::size_t kCalls = JournalPage::kCalls;

  /// Throws bad_alloc.
  explicit Journal(PublishedPages& pages);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  /// The next call has come to its turn. Returns its number, which goes on where `introduce` was called.
  std::uint64_t begin(const CallWords& words, Algorithm algorithm, std::int64_t now_ns) noexcept {
    const std::uint64_t number = page_->last + 1;
    page_->calls[number % kCalls] = {words.high, words.low, static_cast<std::uint8_t>(algorithm), 0, kUnderWay,
                                     now_ns,     0};
    std::atomic_ref(page_->last).store(number, std::memory_order_release);
    return number;
  }
  /// The last call goes another way than was planned.
  void change(Algorithm algorithm) noexcept { latest().algorithm = static_cast<std::uint8_t>(algorithm); }
  void end(Status status, std::int64_t now_ns) noexcept {
    latest().status = static_cast<std::int16_t>(status);
    latest().ended_ns = now_ns;
  }
  /// A stream has it queued.
  void queue(const CallWords& words, std::uint8_t algorithm, std::int64_t now_ns) noexcept;
  /// What kernels were last seen to wait for.
  void note_kernels(std::uint64_t call, unsigned member) noexcept;
  /// Whom the last call waits for; off the path of calls.
  void note_awaited(unsigned member) noexcept { page_->awaits = member + 1; }
  void note_fault(Status status) noexcept { page_->fault = static_cast<std::uint32_t>(status); }

  /// How many calls there were.
  [[nodiscard]] std::uint64_t last() const noexcept { return page_->last; }
  /// The team has been made: who reads pages finds it, and nobody is to see the calls until now: the next one is the
  /// first. `rank`: of this process in its job.
  void introduce(std::string_view name, std::uint64_t key, const Members& members, Rank rank) noexcept;
  /// The number of a call as it is told to people.
  [[nodiscard]] std::uint64_t shown(std::uint64_t number) const noexcept {
    return number > page_->hidden ? number - page_->hidden : 0;
  }

  /// The oldest first.
  [[nodiscard]] std::vector<TeamCall> calls() const;
  [[nodiscard]] std::vector<TeamCall> stream_calls() const;

 private:
  static constexpr auto kUnderWay = static_cast<std::int16_t>(Status::in_progress);

  JournalEntry& latest() noexcept { return page_->calls[page_->last % kCalls]; }

  PublishedPages& pages_;
  std::byte* const published_;            ///< Null: nobody else reads it.
  std::unique_ptr<JournalPage> private_;  ///< Then.
  JournalPage* const page_;
};

}  // namespace brant::coll
