#include "core/shared_memory_fault.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include <fmt/format.h>

namespace brant {
namespace {

constexpr std::uint64_t kTooLittle = std::uint64_t{16} << 20;  // two processes of UCX take some megabytes each

bool proc_is_own() noexcept {
  std::array<char, 32> link{};
  const ssize_t length = ::readlink("/proc/self", link.data(), link.size());
  return length > 0 &&
         std::string_view(link.data(), static_cast<std::size_t>(length)) == fmt::format_int(::getpid()).str();
}

}  // namespace

SharedMemoryPlace look_at_shared_memory() noexcept {
  SharedMemoryPlace place;
  struct statvfs facts{};
  if (::statvfs("/dev/shm", &facts) == 0) {
    place.bytes = std::uint64_t{facts.f_blocks} * facts.f_frsize;
    place.free_bytes = std::uint64_t{facts.f_bavail} * facts.f_frsize;
  }
  place.own_proc = proc_is_own();
  return place;
}

std::string shared_memory_fault(const SharedMemoryPlace& place) {
  std::string text;
  if (place.free_bytes < kTooLittle)
    text += fmt::format(
        ". Processes of one host connect through /dev/shm, which has {} of {} bytes free: enlarge it (`mount -o "
        "remount,size=4G /dev/shm`, or start the container with --shm-size=4g)",
        place.free_bytes, place.bytes);
  if (!place.own_proc)
    text +=
        ". /proc is that of another PID namespace, so processes of this one cannot find each other's memory: mount "
        "one of its own (`unshare --mount-proc`)";
  return text;
}

}  // namespace brant
