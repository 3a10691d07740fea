#include "base/process_mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "base/log.h"
#include "base/unique_fd.h"

namespace brant {
namespace {

/// Field 22 of /proc/<pid>/stat, or nothing if the process is gone or a zombie. Fields are counted from the last ')',
/// since the program's name before it may contain anything.
Result<std::uint64_t> start_time_of(std::int32_t pid) noexcept {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  const UniqueFd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  if (!file) return Status::peer_lost;
  std::array<char, 1024> buffer{};
  const ssize_t length = ::read(file.get(), buffer.data(), buffer.size());
  if (length <= 0) return Status::peer_lost;
  std::string_view text(buffer.data(), static_cast<std::size_t>(length));
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return Status::io_error;
  text.remove_prefix(name_end + 1);
  for (int field = 3; !text.empty(); ++field) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::string_view word = text.substr(0, text.find(' '));
    if (field == 3 && (word == "Z" || word == "X")) return Status::peer_lost;
    if (field == 22) {
      std::uint64_t ticks = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), ticks);
      if (error != std::errc{}) return Status::io_error;
      return ticks;
    }
    text.remove_prefix(word.size());
  }
  return Status::io_error;
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
