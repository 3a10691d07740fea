#pragma once

#include <cstddef>

/// Programs of tests that link scarce_memory.cc have an operator new that can be told to fail.
namespace brant::test {

/// While it lives, one allocation of the thread that made it fails: the `nth` (1: the first), or all from that one on.
/// One at a time.
class ScarceMemory {
 public:
  enum class Fails { once, from_then_on };

  explicit ScarceMemory(unsigned nth, Fails fails = Fails::once) noexcept;
  ~ScarceMemory() { end(); }
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;

  /// There is memory again.
  void end() noexcept;
  /// Whether one has failed.
  [[nodiscard]] bool failed() const noexcept;

  /// For what allocates by other means, as devices do: counted as operator new is. True: it must fail.
  static bool refuses() noexcept;
};

}  // namespace brant::test
