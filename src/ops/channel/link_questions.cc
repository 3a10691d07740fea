#include "ops/channel/link_questions.h"

#include <algorithm>
#include <utility>

#include "ops/channel/endpoint.h"

namespace brant {

void LinkQuestions::put_off(Transfer& transfer) noexcept {
  transfer.asked_at = Clock::now();
  waiting_.push_back(transfer);
  engine_.pollers().attach(*this);
}

void LinkQuestions::forget(Transfer& transfer) noexcept {
  if (!waiting_.linked(transfer)) return;
  waiting_.remove(transfer);
  if (waiting_.empty()) engine_.pollers().detach(*this);
}

unsigned LinkQuestions::poll() noexcept {
  unsigned asked = 0;
  const TimePoint now = Clock::now();
  if (std::exchange(heard_, false)) heard_at_ = now;
  for (Transfer* transfer = waiting_.front(); transfer != nullptr; transfer = waiting_.front()) {
    const TimePoint since = transfer->asked_at;
    if (now - std::max(since, heard_at_) < kPatience && now - since < kPatienceMost) break;
    forget(*transfer);
    transfer->endpoint.link_sender()->ask_late(*transfer);
    ++asked;
  }
  return asked;
}

}  // namespace brant
