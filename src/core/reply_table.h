#pragma once

#include <cstdint>
#include <vector>

#include "brant/base/clock.h"
#include "brant/core/reply.h"

namespace brant::detail {

/// Who waits for which reply. A number is 20 bits of place and 12 bits of turn, so that a late second answer meets
/// nobody. `Asked` says what was asked of whom, for errors.
template <typename Asked>
class ReplyTable {
 public:
  static constexpr std::size_t kRepliesMax = (1u << 20) - 1;

  struct Entry : Asked {
    Waiting waiting;
    std::int32_t rank = -1;  ///< Who is to answer; -1 while unknown.
    std::int64_t since = 0;  ///< `coarse_now`.
    std::uint32_t turn = 1;
    bool used = false;
  };

  /// 0 when a million replies are waited for already.
  std::uint32_t add(const Waiting& waiting, const Asked& asked) {
    std::uint32_t place = 0;
    if (!free_.empty()) {
      place = free_.back();
      free_.pop_back();
    } else {
      if (entries_.size() >= kRepliesMax) return 0;
      place = static_cast<std::uint32_t>(entries_.size());
      entries_.emplace_back();
    }
    Entry& line = entries_[place];
    line.waiting = waiting;
    static_cast<Asked&>(line) = asked;
    line.rank = -1;
    line.since = coarse_now();
    line.used = true;
    return line.turn << 20 | (place + 1);
  }
  /// Null if nobody waits under that number.
  Entry* find(std::uint32_t number) noexcept {
    const std::uint32_t place = (number & 0xfffff) - 1;
    if (place >= entries_.size()) return nullptr;
    Entry& line = entries_[place];
    return line.used && (line.turn & 0xfff) == number >> 20 ? &line : nullptr;
  }
  /// Takes the waiting one out.
  Waiting take(Entry& line) {
    line.used = false;
    line.turn = line.turn % 0xfff + 1;
    free_.push_back(static_cast<std::uint32_t>(&line - entries_.data()));
    return line.waiting;
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Entry& line : entries_) {
      if (line.used) visit(line);
    }
  }
  /// All numbers in use; for a peer that died, and for the end.
  [[nodiscard]] std::vector<std::uint32_t> numbers(std::int32_t rank, bool any) const {
    std::vector<std::uint32_t> result;
    for (std::uint32_t place = 0; place < entries_.size(); ++place) {
      const Entry& line = entries_[place];
      if (line.used && (any || line.rank == rank)) result.push_back(line.turn << 20 | (place + 1));
    }
    return result;
  }

 private:
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
};

}  // namespace brant::detail
