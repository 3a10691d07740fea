#include <algorithm>

#include <fmt/format.h>

#include "brant/pgas/device_window.cuh"
#include "models/pgas/space_state.h"

namespace brant {

static_assert(sizeof(pgas::DeviceWindow) <= 256, "a window is an argument of kernels, by value");

pgas::DeviceWindow GlobalSpace::window(std::span<const GlobalPtr<std::byte>> places, std::size_t bytes) const {
  const auto refuse = [](Status status, std::size_t member, GlobalPtr<const std::byte> at, const char* why) {
    throw Error(status, fmt::format("a window for kernels, of whose member {} the memory is at {}: {}", member,
                                    describe(at), why));
  };
  if (places.empty() || places.size() > pgas::kWindowMembers) {
    throw Error(Status::invalid_argument, fmt::format("a window for kernels has 1 to {} members, and not {}",
                                                      pgas::kWindowMembers, places.size()));
  }
  pgas::DeviceWindow window;
  window.bytes = bytes;
  window.members = static_cast<unsigned>(places.size());
  window.member = window.members;
  for (std::size_t member = 0; member < places.size(); ++member) {
    const GlobalPtr<std::byte> at = places[member];
    if (at.offset() % 16 != 0) refuse(Status::invalid_argument, member, at, "have it aligned to 16 bytes");
    window.bases[member] = device_address(at, bytes);
    if (window.bases[member] == nullptr)
      refuse(Status::not_supported, member, at,
             "this process's device does not reach it. Await `reach` first; the members must be processes of one host "
             "whose devices map each other's memory");
    if (at.rank() == state_->rank()) window.member = static_cast<unsigned>(member);
  }
  if (window.member == window.members)
    refuse(Status::invalid_argument, 0, places[0], "this process is none of the members");
  return window;
}

}  // namespace brant
