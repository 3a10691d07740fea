#include "base/process_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/unique_fd.h"

namespace brant {

Result<ProcessStat> read_process_stat(std::int32_t pid) noexcept {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  const UniqueFd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text{};
  const ssize_t length = file ? ::read(file.get(), text.data(), text.size() - 1) : -1;
  if (length <= 0) return Status::peer_lost;
  // The name may hold anything, blanks and brackets too: it ends at the last one.
  const char* name = std::strchr(text.data(), '(');
  const char* rest = std::strrchr(text.data(), ')');
  if (name == nullptr || rest == nullptr || rest < name) return Status::io_error;
  ProcessStat stat;
  // NOLINTNEXTLINE(bugprone-unchecked-string-to-number-conversion): numbers of the kernel, as large as their types.
  const int read = std::sscanf(rest,
                               ") %c %" SCNd32 " %*d %*d %*d %*d %" SCNu32                   // fields 3, 4, 9
                               " %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,  // and 22
                               &stat.state, &stat.parent, &stat.flags, &stat.start_time);
  if (read != 4) return Status::io_error;
  stat.name.assign(name + 1, rest);  // 15 bytes lie in the string itself
  return stat;
}

}  // namespace brant
