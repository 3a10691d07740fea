#pragma once

#include <cstddef>
#include <vector>

#include "ops/courier/courier.h"
#include "pair.h"
#include "rows.h"

namespace brant::bench {

/// Device memory of both processes, each mapped in the other.
class Buffers {
 public:
  static constexpr std::size_t kBytes = std::size_t{64} << 20;

  /// Collective. Throws Error.
  Buffers(Pair& pair, port::Device& device, MemoryKind kind);
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  std::byte* source = nullptr;
  std::byte* landing = nullptr;
  std::byte* remote = nullptr;  ///< The other process's landing.

  /// Throws Error naming the first wrong byte of the landing. `span` bytes, which the other side sent from its source.
  void check(std::size_t span);
  void poison(std::size_t span);
  /// Words of this value, at an offset of the source.
  void fill_source(std::size_t at, std::size_t bytes, std::uint64_t word);

 private:
  Pair& pair_;
  port::Device& device_;
  port::Stream* stream_ = nullptr;
};

/// From `post` in one process until the other sees the flag: half a round trip. Collective.
Summary one_way(Pair& pair, Courier& courier, Buffers& buffers, std::size_t bytes, std::size_t times);

/// Rank 0 keeps `window` orders under way; microseconds per window, and the bytes are looked at. Collective.
Summary stream_of(Pair& pair, Courier& courier, Buffers& buffers, std::size_t bytes, std::size_t window,
                  std::size_t times);

/// Spins, with an eye on the courier, until a word that GPUs write has this value.
void wait_for(Courier& courier, const std::uint64_t& flag, std::uint64_t value);

/// Starts it if it is away, and posts. Throws Error if that lasts.
void post(Courier& courier, const CourierOrder& order);

}  // namespace brant::bench
