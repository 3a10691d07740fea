#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "port/memory.h"

namespace brant::bench {

/// Memory of both processes.
struct Shared {
  static constexpr std::size_t kFlags = 1024;
  static constexpr std::size_t kLanding = std::size_t{1} << 20;

  alignas(128) std::atomic<unsigned> arrived[2];
  alignas(128) port::ExportRecord exports[2];
  alignas(
      4096) std::uint64_t flags[2][kFlags];  ///< flags[rank] is polled by `rank` and written by the other's courier.
  alignas(4096) std::uint64_t landing[kLanding / sizeof(std::uint64_t)];  ///< Page-locked for both GPUs.
  alignas(128) std::uint64_t stale;                                       ///< Rounds that a litmus test found wrong.
};

/// Two processes, each with a GPU of its own and no context on any other. Made by fork before the driver wakes up.
class Pair {
 public:
  /// Returns twice: as rank 0 in this process, as rank 1 in a new one. The new one dies with the old one.
  static Pair split(unsigned limit_s);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] Shared& shared() const noexcept { return *shared_; }
  /// Spins until the other one is here too; ends the program if it died.
  void meet() noexcept;
  /// Rank 0 waits for rank 1. The exit status of both together.
  int finish(int status) noexcept;

 private:
  int rank_ = 0;
  pid_t other_ = 0;
  Shared* shared_ = nullptr;
  unsigned meetings_ = 0;
};

}  // namespace brant::bench
