#pragma once

#include <chrono>

#include "ops/channel/transfer.h"

namespace brant {

/// What a closing end does about sources that nobody observes any more: it lets go of them, and waits until they are
/// free, or says which may still be read.
class SourceRelease {
 public:
  explicit SourceRelease(ChannelEndpoint& end) noexcept : end_(end) {}

  void run() noexcept;

 private:
  [[nodiscard]] bool uses_source(const Transfer& transfer) const noexcept;
  [[nodiscard]] bool comes_free(const Transfer& transfer) const noexcept;
  [[nodiscard]] bool is_done() const noexcept;
  void give_up(std::chrono::nanoseconds waited) noexcept;

  ChannelEndpoint& end_;
};

}  // namespace brant
