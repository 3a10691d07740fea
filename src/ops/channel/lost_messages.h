#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>
#include <vector>

#include "brant/base/status.h"
#include "ops/channel/delivery_window.h"

namespace brant {

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
