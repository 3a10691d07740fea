#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <vector>

#include "brant/base/status.h"
#include "ops/channel/delivery_window.h"

namespace brant {

/// Which message the next receive gets: the first that no receive has, or has any more. A receive that was taken back
/// leaves its turn to the next one.
class ReceiveTurns {
 public:
  /// Nothing was returned: the turns follow each other.
  [[nodiscard]] bool in_order() const noexcept { return returned_.empty(); }
  /// Above all numbers that receives had.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  [[nodiscard]] std::uint64_t first_free() const noexcept {
    return returned_.empty() ? next_ : std::min(next_, *std::ranges::min_element(returned_));
  }
  [[nodiscard]] bool is_taken(std::uint64_t number) const noexcept {
    return number < next_ && std::find(returned_.begin(), returned_.end(), number) == returned_.end();
  }
  /// Asked before a receive that waits takes its turn: there is a place for each turn that may come back, of the
  /// messages from `first` on. False: no memory.
  [[nodiscard]] bool can_take(std::uint64_t first) noexcept {
    return next_ - first < returned_.capacity() || grow(first);
  }
  std::uint64_t take() noexcept {
    if (returned_.empty()) return next_++;
    const auto first = std::ranges::min_element(returned_);
    const std::uint64_t number = *first;
    returned_.erase(first);
    return number;
  }
  void give_back(std::uint64_t number) noexcept { returned_.push_back(number); }  // see can_take
  /// Nobody will receive it.
  void strike(std::uint64_t number) noexcept { std::erase(returned_, number); }
  /// Messages before this one are for nobody any more.
  void skip_to(std::uint64_t number) noexcept { next_ = std::max(next_, number); }

 private:
  bool grow(std::uint64_t first) noexcept {
    constexpr std::size_t kFirst = 8;
    try {
      returned_.reserve(std::max<std::size_t>(kFirst, 2 * (next_ - first)));
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  std::uint64_t next_ = 0;
  std::vector<std::uint64_t> returned_;
};

/// A message that no receive can have any more.
struct LostMessage {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  Status status = Status::ok;  ///< Of the receive that will ask for it.
  bool sender_knows = false;
};

/// Those of one end that no receive has asked for yet: of the window, so few.
class LostMessages {
 public:
  [[nodiscard]] bool empty() const noexcept { return messages_.empty(); }
  [[nodiscard]] bool has(std::uint64_t number) const noexcept {
    return std::ranges::find(messages_, number, &LostMessage::number) != messages_.end();
  }
  /// internal: more than the other end may have under way. no_memory.
  Status add(const LostMessage& message) noexcept {
    if (has(message.number)) return Status::ok;
    if (messages_.size() == kWindowMessages) return Status::internal;
    try {
      messages_.push_back(message);
      return Status::ok;
    } catch (const std::bad_alloc&) {
      return Status::no_memory;
    }
  }
  std::optional<LostMessage> take(std::uint64_t number) noexcept {
    const auto found = std::ranges::find(messages_, number, &LostMessage::number);
    if (found == messages_.end()) return std::nullopt;
    const LostMessage message = *found;
    messages_.erase(found);
    return message;
  }

 private:
  std::vector<LostMessage> messages_;
};

}  // namespace brant
