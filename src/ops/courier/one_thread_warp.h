#pragma once

#include <cstdint>

namespace brant::courier {

/// The part of a Machine that is the same wherever a warp is one thread, which does the items of all lanes in turn, and
/// a group is one warp.
class OneThreadWarp {
 public:
  struct Pair {
    std::uint64_t first;
    std::uint64_t second;
  };

  template <typename Each>
  void each(unsigned count, Each&& item) {
    for (unsigned i = 0; i < count; ++i) item(i);
  }
  template <typename Test>
  unsigned leading(unsigned count, Test&& test) {
    unsigned i = 0;
    while (i < count && test(i)) ++i;
    return i;
  }
  template <typename Test>
  bool any(unsigned count, Test&& test) {
    bool found = false;
    for (unsigned i = 0; i < count; ++i) found = test(i) || found;
    return found;
  }
  void sync_warp() noexcept {}
  [[nodiscard]] std::uint64_t uniform(std::uint64_t value) const noexcept { return value; }
  [[nodiscard]] bool leads() const noexcept { return true; }
  void group_sync() noexcept {}
};

}  // namespace brant::courier
