#include "ops/partitioned/parts.h"

#include <algorithm>

#include <fmt/format.h>

namespace brant {

PartRange part_range(std::size_t bytes, std::uint32_t parts, std::uint32_t part) noexcept {
  constexpr std::size_t kStep = 64;
  if (part >= parts) return {bytes, 0};
  const std::size_t whole = bytes / parts + (bytes % parts != 0 ? 1 : 0);
  const std::size_t each = (whole + kStep - 1) / kStep * kStep;
  const std::size_t begin = std::min(bytes, each * part);
  return {begin, std::min(each, bytes - begin)};
}

void check_partitioned(const Channel& channel, const PartitionedOptions& options) {
  if (!channel.is_open()) {
    throw Error(Status::invalid_argument, "messages in parts need a channel of their own that is open");
  }
  if (options.parts == 0 || options.parts > PartitionedOptions::kPartsMax) {
    throw Error(Status::invalid_argument, fmt::format("a message of {} parts on channel {}: use 1 to {}", options.parts,
                                                      channel.id().value, PartitionedOptions::kPartsMax));
  }
}

}  // namespace brant
