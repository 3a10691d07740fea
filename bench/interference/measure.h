#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "brant/base/buffer.h"
#include "brant/core/path.h"

namespace brant::bench {

struct InterferenceOptions {
  std::vector<std::size_t> sizes;          ///< Of what is sent: bytes, ascending, each once, whole words.
  MemoryKind memory = MemoryKind::pinned;  ///< Where the kernel writes and the CPU sends from: pinned, cuda, emulated.
  Path path = Path::automatic;             ///< Of the sends.
  unsigned blocks = 0;                     ///< Of the large kernel; 0: all that run at once.
  std::size_t iterations = 100;            ///< Timed rounds of each case.
  std::size_t warmup = 5;                  ///< Not timed ones before them, in each turn.
  bool check = false;                      ///< Also look at all that was written and sent, and at each ring.
  std::string json;                        ///< File to append rows to.
};

inline constexpr std::size_t kInterferenceBytesMax = std::size_t{256} << 20;

/// Throws Error invalid_argument for options that make no sense.
void require_sense(const InterferenceOptions& options);

/// Measures how much a kernel that writes memory disturbs the sends of the CPU, and how much bells and sends disturb
/// the kernel. Two processes; the first one has the kernel and sends, the second one receives. Throws Error.
void measure_interference(const InterferenceOptions& options);

}  // namespace brant::bench
