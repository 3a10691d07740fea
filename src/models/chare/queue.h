#pragma once

#include <cstdint>
#include <vector>

#include "models/chare/envelope.h"
#include "ops/am/message.h"

namespace brant::detail {

/// What waits to be run: expedited messages first, then by priority, higher ones first, equal ones in the order of
/// arrival. Those without a priority cost no comparison and no memory beyond the message.
class ReadyQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void push(am::Message& message, const Envelope& envelope) {
    ++size_;
    if ((envelope.flags & Envelope::kExpedited) != 0) return expedited_.push_back(message);
    if (envelope.priority == 0) [[likely]]
      return plain_.push_back(message);
    push_ranked(message, envelope.priority);
  }
  /// Runs next: for a message that was taken and is not finished.
  void push_front(am::Message& message) noexcept {
    ++size_;
    expedited_.push_front(message);
  }
  /// Puts what had to wait in front, in its order: messages sent later may stand in the queue already.
  void push_front(am::MessageList& list) noexcept;
  am::Message* pop() noexcept;
  /// Takes out all that a predicate chooses; equal priorities keep their order.
  template <typename Predicate>
  am::MessageList extract(Predicate&& wanted) {
    am::MessageList taken;
    ReadyQueue left;
    while (am::Message* message = pop()) {
      wanted(*message) ? taken.push_back(*message) : left.expedited_.push_back(*message);
    }
    // What was expedited goes back as that; the others by what their headers say, in the order in which they came.
    while (am::Message* message = left.expedited_.pop_front()) push(*message, message->header<Envelope>());
    return taken;
  }
  /// The first that a predicate chooses, without taking it; null if none. For error texts.
  template <typename Predicate>
  [[nodiscard]] am::Message* find(Predicate&& wanted) const {
    for (const am::MessageList* list : {&expedited_, &plain_}) {
      for (am::Message* message = list->front(); message != nullptr; message = message->following) {
        if (wanted(*message)) return message;
      }
    }
    for (const Ranked& ranked : ranked_) {
      if (wanted(*ranked.message)) return ranked.message;
    }
    return nullptr;
  }

 private:
  struct Ranked {
    std::int32_t priority;
    std::uint64_t arrival;
    am::Message* message;
    /// Order of the heap: the top is the most urgent.
    bool operator<(const Ranked& other) const noexcept {
      return priority != other.priority ? priority < other.priority : arrival > other.arrival;
    }
  };
  void push_ranked(am::Message& message, std::int32_t priority);
  am::Message* pop_ranked() noexcept;

  am::MessageList expedited_;
  am::MessageList plain_;
  std::vector<Ranked> ranked_;
  std::uint64_t arrivals_ = 0;
  std::size_t size_ = 0;
};

}  // namespace brant::detail
