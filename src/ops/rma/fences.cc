#include "ops/rma/fences.h"

#include "ops/rma/atomics.h"
#include "ops/rma/target.h"

namespace brant {

const MoveEvents RmaFences::kEvents{[](Move& move, Status status) noexcept {
                                      auto& fence = static_cast<Fence&>(move);
                                      fence.fences.end(fence, status);
                                    },
                                    nullptr};

Status RmaFences::post(Rank rank, Op& op) noexcept {
  op.result = {Status::ok, 0};
  Peer* const peer = engine_.peers().find(rank.value);
  if (peer == nullptr) return Status::invalid_argument;
  if (peer->lost) return Status::peer_lost;
  Fence* fence = records_.take(*this, *peer);
  if (fence == nullptr) return records_.refusal();
  fence->lost = &RmaFences::on_lost;
  fence->cancel = [](OpOwner&) noexcept {};  // it goes on, and tells nobody
  peer->add_outstanding(*fence);
  Status status = Status::in_progress;
  if (writes_come_before(*fence)) {
    waiting_.push_back(*fence);
    engine_.pollers().attach(*this);
  } else {
    status = flush(*fence);
  }
  if (status == Status::in_progress) {
    fence->own(engine_.completions(), op);
    return status;
  }
  peer->remove_outstanding(*fence);
  records_.give_back(fence);
  return status;
}

bool RmaFences::writes_come_before(const Fence& fence) noexcept {
  const PeerOp* op = &fence;
  while (op->peer_hook.previous != op) {
    op = op->peer_hook.previous;
    if (op->lost == &RmaAtomics::on_lost) return true;
    const bool is_transfer = op->lost == &RmaTarget::on_lost;
    if (is_transfer && static_cast<const RmaTransfer*>(op)->is_put) return true;
  }
  return false;
}

Status RmaFences::flush(Fence& fence) noexcept {
  fence.is_flushing = true;
  return mover_.flush(fence);
}

void RmaFences::end(Fence& fence, Status status) noexcept {
  if (fence.peer_way.peer.lost) status = Status::peer_lost;
  engine_.completions().finish(fence, {status, 0});
  fence.peer_way.peer.remove_outstanding(fence);
  records_.give_back(&fence);
}

/// A flush is ended by the network when it disconnects.
void RmaFences::on_lost(PeerOp& op) noexcept {
  auto& fence = static_cast<Fence&>(op);
  if (fence.is_flushing) return;
  fence.fences.waiting_.remove(fence);
  fence.fences.end(fence, Status::peer_lost);
}

unsigned RmaFences::poll() noexcept {
  unsigned events = 0;
  Move* next = waiting_.front();
  while (next != nullptr) {
    auto& fence = static_cast<Fence&>(*next);
    next = IntrusiveList<Move, &Move::hook>::next(fence);
    if (writes_come_before(fence)) continue;
    waiting_.remove(fence);
    const Status status = flush(fence);
    if (status != Status::in_progress) end(fence, status);
    ++events;
  }
  if (waiting_.empty()) engine_.pollers().detach(*this);
  return events;
}

}  // namespace brant
