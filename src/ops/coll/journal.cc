#include "ops/coll/journal.h"

#include <algorithm>
#include <new>

#include "ops/coll/device/stream_plan.h"

namespace brant::coll {
namespace {

TeamCall told(const JournalEntry& entry, std::uint64_t number, std::string_view algorithm) {
  const CallWords words = entry.words();
  return {number,
          kind_of(words),
          type_of(words),
          op_of(words),
          root_of(words),
          bytes_of(words),
          static_cast<Status>(entry.status),
          entry.begun_ns,
          entry.ended_ns,
          algorithm};
}

}  // namespace

Journal::Journal(PublishedPages& pages)
    : pages_(pages),
      published_(pages.add()),
      private_(published_ == nullptr ? std::make_unique<JournalPage>() : nullptr),
      page_(published_ == nullptr ? private_.get() : new (published_) JournalPage) {}

Journal::~Journal() { pages_.drop(published_); }

void Journal::queue(const CallWords& words, std::uint8_t algorithm, std::int64_t now_ns) noexcept {
  const std::uint64_t number = page_->stream_calls + 1;
  page_->of_streams[number % JournalPage::kStreamCalls] = {words.high, words.low, algorithm, 0, kUnderWay, now_ns, 0};
  std::atomic_ref(page_->stream_calls).store(number, std::memory_order_release);
}

void Journal::note_kernels(std::uint64_t call, unsigned member) noexcept {
  page_->kernel_call = call;
  page_->kernel_awaits = member;
}

void Journal::introduce(std::string_view name, std::uint64_t key, const Members& members, Rank rank) noexcept {
  const std::size_t length = std::min(name.size(), sizeof(page_->name) - 1);
  std::copy_n(name.data(), length, page_->name);
  page_->name[length] = '\0';
  page_->key = key;
  page_->members = members.count;
  page_->self = members.self;
  page_->rank = rank.value;
  page_->hidden = page_->last;
  std::atomic_ref(page_->magic).store(JournalPage::kMagic, std::memory_order_release);
}

std::vector<TeamCall> Journal::calls() const {
  std::vector<TeamCall> all;
  const std::uint64_t last = page_->last, hidden = page_->hidden;
  const std::uint64_t first = last - hidden < kCalls ? hidden + 1 : last - kCalls + 1;
  for (std::uint64_t number = first; number <= last; ++number) {
    const JournalEntry& entry = page_->calls[number % kCalls];
    all.push_back(told(entry, shown(number), algorithm_name(static_cast<Algorithm>(entry.algorithm))));
  }
  return all;
}

std::vector<TeamCall> Journal::stream_calls() const {
  std::vector<TeamCall> all;
  const std::uint64_t last = page_->stream_calls;
  const std::uint64_t first = last < JournalPage::kStreamCalls ? 1 : last - JournalPage::kStreamCalls + 1;
  for (std::uint64_t number = first; number <= last; ++number) {
    const JournalEntry& entry = page_->of_streams[number % JournalPage::kStreamCalls];
    all.push_back(told(entry, number, stream_algorithm_name(static_cast<StreamAlgorithm>(entry.algorithm))));
  }
  return all;
}

}  // namespace brant::coll
