#pragma once

#include <cstdint>

#include "brant/base/result.h"

namespace brant {

/// Who a process is. The start time tells it from a later process that was given the same pid; the namespace says
/// whether the pid means anything here. Trivially copyable: travels in export records.
struct ProcessMark {
  std::uint64_t start_time = 0;     ///< In clock ticks since boot, as in /proc/<pid>/stat.
  std::uint64_t pid_namespace = 0;  ///< Inode of /proc/<pid>/ns/pid.
  std::int32_t pid = -1;
  std::int32_t reserved = 0;  ///< No padding: records are compared and copied as bytes.

  bool operator==(const ProcessMark&) const noexcept = default;
};

/// This process. Reads /proc (microseconds), so that it is right after a fork too. io_error where /proc is not mounted.
Result<ProcessMark> own_process_mark() noexcept;

/// ok if that very process lives and is reachable by its pid; peer_lost if it is gone (a zombie counts as gone);
/// not_supported if it lives in another pid namespace, which is logged with the cure.
Status check_process(const ProcessMark& mark) noexcept;

}  // namespace brant
