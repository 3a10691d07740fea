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
  fail(result.ok() ? Status::internal : result.status, what_, local_);
}

void RmaBatch::fail(Status status, const char* what, Buffer local) const {
  throw Error(status,
              fmt::format("rank {} could not {} {} bytes of {} memory at rank {}: {}", runtime_.rank().value, what,
                          local.bytes, memory_kind_name(local.kind), there_.rank().value, status_text(status)));
}

}  // namespace brant::bench
