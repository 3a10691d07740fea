#include "models/pgas/device_windows.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/pgas/space_state.h"

namespace brant {
namespace {

static_assert(sizeof(pgas::DeviceWindow) <= 256, "a window is an argument of kernels, by value");

[[noreturn]] void refuse(Status status, std::size_t member, GlobalPtr<const std::byte> at, const char* why) {
  throw Error(status, fmt::format("a window for kernels, of whose member {} the memory is at {}: {}", member,
                                  describe(at), why));
}

}  // namespace

DeviceWindows::~DeviceWindows() { space_.engine().deferrals().take_back(*this); }

/// Where the device reaches a member. Null: it goes by the ring.
void* DeviceWindows::address(std::size_t member, GlobalPtr<std::byte> at, std::size_t bytes) {
  KnownSegment* const known = space_.find_reached(at, bytes);
  if (known != nullptr && (known->remote.owners_address() + at.offset()) % 16 != 0)
    refuse(Status::invalid_argument, member, at, "have its address aligned to 16 bytes");
  void* const address = space_.device_address(at, bytes);
  if (address != nullptr) return address;
  if (at.rank() == space_.rank())
    refuse(Status::not_supported, member, at,
           "this process's device does not reach so much of it. Use memory of the device, or pinned memory");
  if (known == nullptr)
    refuse(Status::not_supported, member, at, "so much of it is not reached from here. Await `reach` first");
  return nullptr;
}

pgas::DeviceWindow DeviceWindows::make(std::span<const GlobalPtr<std::byte>> places, std::size_t bytes) {
  if (places.empty() || places.size() > pgas::kWindowMembers) {
    throw Error(Status::invalid_argument, fmt::format("a window for kernels has 1 to {} members, and not {}",
                                                      pgas::kWindowMembers, places.size()));
  }
  pgas::DeviceWindow window;
  window.bytes = bytes;
  window.members = static_cast<unsigned>(places.size());
  window.member = window.members;
  bool all_mapped = true;
  for (std::size_t member = 0; member < places.size(); ++member) {
    const auto is_same = [&](GlobalPtr<std::byte> at) { return at.rank() == places[member].rank(); };
    if (std::ranges::any_of(places.first(member), is_same))
      refuse(Status::invalid_argument, member, places[member], "its process is a member already");
    window.bases[member] = address(member, places[member], bytes);
    all_mapped = all_mapped && window.bases[member] != nullptr;
    if (places[member].rank() == space_.rank()) window.member = static_cast<unsigned>(member);
  }
  if (window.member == window.members)
    refuse(Status::invalid_argument, 0, places[0], "this process is none of the members");
  if (all_mapped) return window;
  proxies_.push_back(
      std::make_unique<WindowProxy>(space_, std::vector<GlobalPtr<std::byte>>(places.begin(), places.end()), bytes));
  window.ring = proxies_.back()->ring();
  return window;
}

const WindowProxy* DeviceWindows::find(const pgas::DeviceWindow& window) const noexcept {
  const auto found =
      std::ranges::find_if(proxies_, [&](const auto& each) { return each->ring().host == window.ring.host; });
  return found == proxies_.end() ? nullptr : found->get();
}

void DeviceWindows::close(const pgas::DeviceWindow& window) noexcept {
  if (window.ring.host == nullptr) return;
  for (const auto& proxy : proxies_) {
    if (proxy->ring().host != window.ring.host) continue;
    proxy->close(true);
    if (proxy->may_go()) space_.engine().deferrals().defer(*this);
  }
}

void DeviceWindows::close_those_of(std::int32_t rank, std::uint32_t segment) noexcept {
  for (const auto& proxy : proxies_) {
    if (!proxy->uses(rank, segment)) continue;
    proxy->close(rank == space_.rank());
  }
}

void DeviceWindows::look_around() noexcept {
  for (const auto& proxy : proxies_) {
    proxy->look_around();
    if (proxy->may_go()) space_.engine().deferrals().defer(*this);
  }
}

bool DeviceWindows::all_over() const noexcept {
  return std::ranges::all_of(proxies_, [](const auto& proxy) { return proxy->is_over(); });
}

void DeviceWindows::run_deferred() noexcept {
  std::erase_if(proxies_, [](const auto& proxy) { return proxy->may_go(); });
}

pgas::DeviceWindow GlobalSpace::window(std::span<const GlobalPtr<std::byte>> places, std::size_t bytes) const {
  return state_->windows().make(places, bytes);
}

void GlobalSpace::close_window(const pgas::DeviceWindow& window) noexcept { state_->windows().close(window); }

Status GlobalSpace::status_of(const pgas::DeviceWindow& window, Rank* lost) const noexcept {
  if (window.ring.host == nullptr) return Status::ok;
  const WindowProxy* const proxy = state_->windows().find(window);
  if (proxy == nullptr) return Status::not_found;
  if (lost != nullptr && proxy->status() != Status::ok) *lost = proxy->lost_member();
  return proxy->status();
}

}  // namespace brant
