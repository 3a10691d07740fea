#include "models/chare/queue.h"

#include <algorithm>

namespace brant::detail {

void ReadyQueue::push_ranked(am::Message& message, std::int32_t priority) {
  ranked_.push_back({priority, arrivals_++, &message});
  std::push_heap(ranked_.begin(), ranked_.end());
}

am::Message* ReadyQueue::pop_ranked() noexcept {
  std::pop_heap(ranked_.begin(), ranked_.end());
  am::Message* message = ranked_.back().message;
  ranked_.pop_back();
  return message;
}

am::Message* ReadyQueue::pop() noexcept {
  if (size_ == 0) return nullptr;
  --size_;
  if (!expedited_.empty()) return expedited_.pop_front();
  const bool ranked_first = !ranked_.empty() && (ranked_.front().priority > 0 || plain_.empty());
  return ranked_first ? pop_ranked() : plain_.pop_front();
}

void ReadyQueue::push_front(am::MessageList& list) noexcept {
  am::MessageList reversed;
  while (am::Message* message = list.pop_front()) reversed.push_front(*message);
  while (am::Message* message = reversed.pop_front()) push_front(*message);
}

}  // namespace brant::detail
