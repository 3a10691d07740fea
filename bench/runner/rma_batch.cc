#include "bench/runner/rma_batch.h"

#include <utility>

#include <fmt/format.h>

namespace brant::bench {

void RmaBatch::finish() {
  auto ended = [&]() noexcept { return window_.pending() == 0 || !window_.result().ok(); };
  if (spin_) {
    while (!ended()) static_cast<void>(runtime_.worker().progress());
  } else {
    static_cast<void>(runtime_.worker().wait_until(ended));
  }
  const OpResult result = window_.result().ok() ? runtime_.wait(window_.drain()) : window_.result();
  if (result.ok() && result.bytes == std::exchange(expected_, 0)) return;
  window_.withdraw();
  fail(result.ok() ? Status::internal : result.status, direction_, local_);
}

void RmaBatch::fail(Status status, RmaDirection direction, Buffer local) const {
  const bool puts = direction == RmaDirection::put;
  throw Error(status, fmt::format("rank {} could not {} {} bytes of {} memory {} rank {}: {}", runtime_.rank().value,
                                  puts ? "put" : "get", local.bytes, memory_kind_name(local.kind),
                                  puts ? "into" : "from", there_.rank().value, status_text(status)));
}

}  // namespace brant::bench
