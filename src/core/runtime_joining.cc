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

JoinSteps::JoinSteps(Runtime& runtime) noexcept : engine_(runtime.engine_.get()) {}

Rank JoinSteps::begin_join(std::string_view address) { return engine_->joined_peers().begin_join(address); }
bool JoinSteps::is_join_decided(Rank rank) noexcept { return engine_->joined_peers().is_join_decided(rank); }
void JoinSteps::end_join(Rank rank, std::chrono::nanoseconds waited) { engine_->joined_peers().end_join(rank, waited); }
bool JoinSteps::has_accepted() noexcept { return engine_->joined_peers().has_accepted(); }
bool JoinSteps::begin_leave(Rank rank) { return engine_->joined_peers().begin_leave(rank); }
bool JoinSteps::is_leave_decided(Rank rank) noexcept { return engine_->joined_peers().is_leave_decided(rank); }
void JoinSteps::end_leave(Rank rank, std::chrono::nanoseconds waited) noexcept {
  engine_->joined_peers().end_leave(rank, waited);
}

}  // namespace brant
