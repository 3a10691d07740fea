#pragma once

#include <cstdint>
#include <string>

#include "brant/coll/collectives.h"

namespace brant::coll {

/// What a member calls, in twelve bytes, which go with the first thing that other members hear of the call: equal at
/// all of them, or the call is refused. Not a hash: whoever sees other words can say what was called.
struct CallWords {
  std::uint64_t high = 0;  ///< Kind 8, type 8, bytes 48.
  std::uint32_t low = 0;   ///< Op 8, root 24.

  bool operator==(const CallWords&) const noexcept = default;
};

inline constexpr std::uint64_t kBytesMax = (std::uint64_t{1} << 48) - 1;
inline constexpr std::uint32_t kRootMax = (std::uint32_t{1} << 24) - 1;

/// `bytes`, `root` within the bounds above.
CallWords words_of(CollectiveKind kind, DataType type, ReduceOp op, std::uint64_t bytes, std::int32_t root) noexcept;

CollectiveKind kind_of(const CallWords& words) noexcept;
DataType type_of(const CallWords& words) noexcept;
ReduceOp op_of(const CallWords& words) noexcept;
std::uint64_t bytes_of(const CallWords& words) noexcept;
std::int32_t root_of(const CallWords& words) noexcept;

/// "allreduce of 8 bytes (f32, sum)", "broadcast of 64 bytes from rank 2". Of any words: they may be another's.
std::string describe(const CallWords& words);

}  // namespace brant::coll
