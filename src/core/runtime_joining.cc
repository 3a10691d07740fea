#include "brant/core/runtime.h"
#include "core/joined_peers.h"

namespace brant {

std::string Runtime::address() { return JoinedPeers::of(*engine_).address(); }

Rank Runtime::join(std::string_view address, std::chrono::nanoseconds limit) {
  return JoinedPeers::of(*engine_).join(address, limit);
}

std::optional<Rank> Runtime::accept(std::chrono::nanoseconds limit) {
  JoinedPeers& joined = JoinedPeers::of(*engine_);
  static_cast<void>(worker().wait_until([&] { return joined.has_accepted(); }, limit));
  return joined.take_accepted();
}

void Runtime::stop_accepting() noexcept { JoinedPeers::of(*engine_).stop_accepting(); }

void Runtime::leave(Rank peer, std::chrono::nanoseconds limit) { JoinedPeers::of(*engine_).leave(peer, limit); }

}  // namespace brant
