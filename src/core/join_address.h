#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process_mark.h"
#include "core/peer_record.h"

namespace brant {

/// Who has it may join the process that made it.
using JoinKey = std::array<std::byte, 32>;

/// Who a process is, to one that does not know its job.
struct JoinIdentity {
  std::string job_id;
  std::string host;        ///< Its name, for people.
  std::int32_t rank = -1;  ///< In its job.
  ProcessMark mark;        ///< Tells it from a later process with its pid.
  PeerRecord record;
};

std::vector<std::byte> pack(const JoinIdentity& identity);
/// Throws version_mismatch (another brant), invalid_argument (damaged).
JoinIdentity unpack_join_identity(std::span<const std::byte> packed);
/// "rank 0 of job 1234 (host node7, pid 4711)".
std::string text_of(const JoinIdentity& identity);

/// What `Runtime::address` gives: text of at most kJoinAddressMax characters.
struct JoinAddress {
  JoinKey key{};
  JoinIdentity identity;
};

inline constexpr std::size_t kJoinAddressMax = 16'384;

std::string pack(const JoinAddress& address);
/// Spaces and ends of lines around it do not count. Throws as unpack_join_identity does.
JoinAddress unpack_join_address(std::string_view text);

}  // namespace brant
