#include "base/place.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <string_view>

namespace brant {
namespace {

constexpr std::string_view kUnknown = "unknown";

std::string link_text(const char* path) {
  std::array<char, 256> text{};
  const ssize_t length = ::readlink(path, text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : std::string(kUnknown);
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

Place own_place() {
  const std::string boot = boot_id();
  const std::string ipc_namespace = link_text("/proc/self/ns/ipc");
  Place place;
  place.host = boot + "/" + ipc_namespace;
  place.pid_namespace = link_text("/proc/self/ns/pid");
  place.known = !boot.empty() && ipc_namespace != kUnknown && place.pid_namespace != kUnknown;
  return place;
}

}  // namespace brant
