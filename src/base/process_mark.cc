#include "base/process_mark.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process_stat.h"

namespace brant {
namespace {

/// peer_lost: the process is gone or a zombie.
Result<std::uint64_t> start_time_of(std::int32_t pid) noexcept {
  const Result<ProcessStat> stat = read_process_stat(pid);
  if (!stat) return stat.status();
  if (stat->dead()) return Status::peer_lost;
  return stat->start_time;
}

std::uint64_t own_pid_namespace() noexcept {
  struct stat info = {};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? static_cast<std::uint64_t>(info.st_ino) : 0;
}

}  // namespace

Result<ProcessMark> own_process_mark() noexcept {
  const auto pid = static_cast<std::int32_t>(::getpid());
  const Result<std::uint64_t> start = start_time_of(pid);
  if (!start) return Status::io_error;
  return ProcessMark{.start_time = *start, .pid_namespace = own_pid_namespace(), .pid = pid};
}

Status check_process(const ProcessMark& mark) noexcept {
  if (mark.pid <= 0) return Status::invalid_argument;
  if (mark.pid_namespace != own_pid_namespace()) {
    log::warn(
        "process {} lives in another pid namespace: memory cannot be shared with it. Start the containers of one host "
        "with "
        "one pid namespace (docker: --pid=host or --pid=container:NAME; kubernetes: shareProcessNamespace)",
        mark.pid);
    return Status::not_supported;
  }
  const Result<std::uint64_t> start = start_time_of(mark.pid);
  if (!start) return start.status();
  return *start == mark.start_time ? Status::ok : Status::peer_lost;
}

}  // namespace brant
