#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "brant/coll/team.h"
#include "ops/coll/plan.h"
#include "ops/coll/work.h"

namespace brant::coll {

/// The last calls of a member.
class Journal {
 public:
  static constexpr std::size_t kCalls = 64;

  /// The next call has come to its turn. Returns its number, which goes on where `hide` was called.
  std::uint64_t begin(const CallWords& words, Algorithm algorithm, std::int64_t now_ns) noexcept {
    Entry& entry = entries_[++last_ % kCalls];
    entry = {words, algorithm, Status::in_progress, now_ns, 0};
    return last_;
  }
  /// The last call goes another way than was planned.
  void change(Algorithm algorithm) noexcept { entries_[last_ % kCalls].algorithm = algorithm; }
  void end(Status status, std::int64_t now_ns) noexcept {
    entries_[last_ % kCalls].status = status;
    entries_[last_ % kCalls].ended_ns = now_ns;
  }
  /// How many calls there were.
  [[nodiscard]] std::uint64_t last() const noexcept { return last_; }
  /// Nobody is to see the calls until now: the next one is the first.
  void hide() noexcept { hidden_ = last_; }
  /// The number of a call as it is told to people.
  [[nodiscard]] std::uint64_t shown(std::uint64_t number) const noexcept {
    return number > hidden_ ? number - hidden_ : 0;
  }

  /// The oldest first.
  [[nodiscard]] std::vector<TeamCall> calls() const {
    std::vector<TeamCall> all;
    const std::uint64_t first = last_ - hidden_ < kCalls ? hidden_ + 1 : last_ - kCalls + 1;
    for (std::uint64_t number = first; number <= last_; ++number) {
      const Entry& entry = entries_[number % kCalls];
      all.push_back({shown(number), kind_of(entry.words), type_of(entry.words), op_of(entry.words),
                     root_of(entry.words), bytes_of(entry.words), entry.status, entry.begun_ns, entry.ended_ns,
                     algorithm_name(entry.algorithm)});
    }
    return all;
  }

 private:
  struct Entry {
    CallWords words;
    Algorithm algorithm = Algorithm::alone;
    Status status = Status::in_progress;
    std::int64_t begun_ns = 0;
    std::int64_t ended_ns = 0;
  };

  std::array<Entry, kCalls> entries_{};
  std::uint64_t last_ = 0;
  std::uint64_t hidden_ = 0;
};

}  // namespace brant::coll
