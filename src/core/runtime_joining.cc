#include "brant/core/runtime.h"
#include "core/engine.h"

namespace brant {

std::string Runtime::address() { return engine_->joined_peers().address(); }

Rank Runtime::join(std::string_view address, std::chrono::nanoseconds limit) {
  return engine_->joined_peers().join(address, limit, engine_->waiting());
}

std::optional<Rank> Runtime::accept(std::chrono::nanoseconds limit) {
  JoinedPeers& joined = engine_->joined_peers();
  static_cast<void>(worker().wait_until([&] { return joined.has_accepted(); }, limit));
  return joined.take_accepted();
}

void Runtime::stop_accepting() noexcept { engine_->joined_peers().stop_accepting(); }

void Runtime::leave(Rank peer, std::chrono::nanoseconds limit) {
  engine_->joined_peers().leave(peer, limit, engine_->waiting());
}

}  // namespace brant
