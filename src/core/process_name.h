#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "core/peer_record.h"

namespace brant {

/// What all processes call one, where some know it by ranks of their own, since it has joined them: by its address in
/// the network.
[[nodiscard]] inline std::uint64_t process_name(const PeerRecord& record) noexcept {
  return checksum_of(record.wire_address);
}

}  // namespace brant
