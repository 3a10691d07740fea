#include "brant/ops/stream_channel.h"

#include "brant/core/runtime.h"
#include "core/told_at_once.h"
#include "ops/stream/table.h"

namespace brant {
namespace {

Status counted(StreamEnd* end, Status status, Op& op) noexcept {
  if (end != nullptr && status != Status::in_progress) end->engine().counters().count_outcome(status);
  return told_at_once(status, op);
}

template <typename Queue>
Status queue(StreamEnd* end, const OnStream& on, Queue&& transfer) noexcept {
  if (on.op != nullptr) {
    if (on.op->pending()) [[unlikely]]
      return refuse_pending_op();
    on.op->result = {Status::ok, 0};
  }
  Status status = end == nullptr || on.stream == nullptr ? Status::invalid_argument : end->ready();
  if (status == Status::ok) status = transfer(*end);
  return on.op == nullptr ? status : counted(end, status, *on.op);
}

}  // namespace

StreamChannel StreamChannel::open(Runtime& runtime, Rank peer, ChannelId id, const StreamChannelOptions& options) {
  return StreamChannel(&runtime.worker().engine().service<StreamTable>().open(peer, id, options));
}

void StreamChannel::close() noexcept {
  if (end_ == nullptr) return;
  StreamEnd& end = *std::exchange(end_, nullptr);
  if (end.engine().is_of_this_process()) end.table().close(end);
}

Rank StreamChannel::peer() const noexcept { return end_ == nullptr ? Rank{} : end_->peer().rank; }
ChannelId StreamChannel::id() const noexcept { return end_ == nullptr ? ChannelId{} : end_->id(); }
Status StreamChannel::state() const noexcept { return end_ == nullptr ? Status::invalid_argument : end_->state(); }

Status StreamChannel::post_prepare(Op& op) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  op.result = {Status::ok, 0};
  return counted(end_, end_ == nullptr ? Status::invalid_argument : end_->prepare(op), op);
}

Status StreamChannel::send(ConstBuffer source, const OnStream& on) noexcept {
  return queue(end_, on, [&](StreamEnd& end) noexcept { return end.send(source, on); });
}

Status StreamChannel::recv(Buffer landing, const OnStream& on) noexcept {
  return queue(end_, on, [&](StreamEnd& end) noexcept { return end.recv(landing, on); });
}

Status StreamChannel::recv_start(Buffer landing, const OnStream& on) noexcept {
  if (on.op != nullptr) return Status::invalid_argument;  // there is nothing to wait for yet
  return queue(end_, on, [&](StreamEnd& end) noexcept { return end.recv_start(landing, on.stream); });
}

Status StreamChannel::recv_finish(const OnStream& on) noexcept {
  return queue(end_, on, [&](StreamEnd& end) noexcept { return end.recv_finish(on); });
}

}  // namespace brant
