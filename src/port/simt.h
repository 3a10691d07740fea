#pragma once

#include "brant/base/simt.h"

#ifndef __CUDACC__
#include <atomic>
#include <exception>
#include <latch>
#include <thread>
#include <vector>

namespace brant::simt {

/// Runs body(0) to body(count - 1) at once, the first on this thread and each other on one of its own, and returns when
/// all have ended. None begins before all have a thread, since they may wait for one another: false, and none has run,
/// where there are not enough threads.
template <typename Body>
bool run_at_once(unsigned count, const Body& body) noexcept {
  std::latch all_there(1);
  std::atomic<bool> go = false;
  std::vector<std::jthread> others;
  try {
    others.reserve(count);
    for (unsigned i = 1; i < count; ++i) {
      others.emplace_back([&, i] {
        all_there.wait();
        if (go.load(std::memory_order_relaxed)) body(i);
      });
    }
    go.store(true, std::memory_order_relaxed);
  } catch (const std::exception&) {
    all_there.count_down();
    return false;  // those that are there end without having begun
  }
  all_there.count_down();
  body(0);
  return true;
}

}  // namespace brant::simt
#endif
