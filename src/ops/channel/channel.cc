#include "brant/ops/channel.h"

#include <fmt/format.h>

#include "brant/core/runtime.h"
#include "ops/channel/reserved_ids.h"
#include "ops/channel/table.h"

namespace brant {

Channel Channel::open(Runtime& runtime, Rank peer, ChannelId id, const ChannelOptions& options) {
  if (id.value > kChannelIdMax && id.value <= reserved_id::kLast) {
    throw Error(
        Status::invalid_argument,
        fmt::format("channel id {} is one of those that brant keeps for channels of its own ({} and above): use "
                    "0 to {}",
                    id.value, kChannelIdMax + 1, kChannelIdMax));
  }
  auto& table = runtime.worker().engine().service<ChannelTable>();
  return Channel(&table.open(peer, id, options.path));
}

Channel Channel::open_reserved(Runtime& runtime, Rank peer, ChannelId id, const ChannelOptions& options,
                               unsigned side) {
  auto& table = runtime.worker().engine().service<ChannelTable>();
  return Channel(&table.open(peer, id, options.path, side));
}

void Channel::close() noexcept {
  if (endpoint_ != nullptr) std::exchange(endpoint_, nullptr)->closing().close();
}

Rank Channel::peer() const noexcept { return endpoint_ == nullptr ? Rank{} : endpoint_->peer().rank; }
ChannelId Channel::id() const noexcept { return endpoint_ == nullptr ? ChannelId{} : endpoint_->id(); }
unsigned Channel::side() const noexcept { return endpoint_ == nullptr ? 0 : endpoint_->side(); }
ChannelCounts Channel::counts() const noexcept { return endpoint_ == nullptr ? ChannelCounts{} : endpoint_->counts(); }

Result<Path> Channel::path_of(MemoryKind kind, std::size_t bytes) const noexcept {
  if (endpoint_ == nullptr || kind == MemoryKind::detect) return Status::invalid_argument;
  Path path = Path::automatic;
  const Status status = endpoint_->paths().choose(kind, bytes, path, kind == MemoryKind::host);
  if (status != Status::ok) return status;
  return path;
}

Result<Path> Channel::path_of(ConstBuffer source) const noexcept {
  if (endpoint_ == nullptr) return Status::invalid_argument;
  Path path = Path::automatic;
  const Status status = endpoint_->paths().of(source, path);
  if (status != Status::ok) return status;
  return path;
}

namespace {

/// An outcome that is known at once is not reported again: a record that is posted next must not fire the sinks of this
/// post.
Status told_at_once(ChannelEndpoint* endpoint, Status status, Op& op) noexcept {
  if (status == Status::in_progress) return status;
  if (endpoint != nullptr) endpoint->engine().counters().count_outcome(status);
  op.source_free = {};
  op.delivered = {};
  return status;
}

}  // namespace

Status Channel::post_send(ConstBuffer source, Op& op) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  return told_at_once(endpoint_, endpoint_ == nullptr ? Status::invalid_argument : endpoint_->sends().post(source, op),
                      op);
}

namespace {

/// `start` gets the lane.
template <typename Start>
Status on_lane(ChannelEndpoint* endpoint, const OnStream& on, Start&& start) noexcept {
  if (endpoint == nullptr || on.stream == nullptr) return Status::invalid_argument;
  if (on.op != nullptr) {
    if (on.op->pending()) [[unlikely]]
      return refuse_pending_op();
    on.op->result = {Status::ok, 0};
  }
  StreamChannel* streams = endpoint->streams();
  const Result<StreamLane*> lane = streams != nullptr ? streams->lane() : Status::no_memory;
  const Status status = lane ? start(**lane) : lane.status();
  return on.op == nullptr ? status : told_at_once(endpoint, status, *on.op);
}

}  // namespace

Status Channel::post_prepare_streams(std::chrono::nanoseconds patience, Op& op) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  if (endpoint_ == nullptr) return told_at_once(nullptr, Status::invalid_argument, op);
  StreamChannel* streams = endpoint_->streams();
  return told_at_once(endpoint_, streams != nullptr ? streams->prepare(patience, op) : Status::no_memory, op);
}

Status Channel::send(ConstBuffer source, const OnStream& on) noexcept {
  return on_lane(endpoint_, on, [&](StreamLane& lane) noexcept {
    const Status status = lane.send(source, on);
    if (status == Status::ok || status == Status::in_progress) endpoint_->sends().count_streamed(source.bytes);
    return status;
  });
}

Status Channel::recv(Buffer landing, const OnStream& on) noexcept {
  return on_lane(endpoint_, on, [&](StreamLane& lane) noexcept { return lane.recv(landing, on); });
}

Status Channel::recv_start(Buffer landing, const OnStream& on) noexcept {
  if (on.op != nullptr) return Status::invalid_argument;  // there is nothing to wait for yet
  return on_lane(endpoint_, on, [&](StreamLane& lane) noexcept { return lane.recv_start(landing, on.stream); });
}

Status Channel::recv_finish(const OnStream& on) noexcept {
  return on_lane(endpoint_, on, [&](StreamLane& lane) noexcept { return lane.recv_finish(on); });
}

Status Channel::post_recv(Buffer landing, Op& op) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  return told_at_once(endpoint_,
                      endpoint_ == nullptr ? Status::invalid_argument : endpoint_->receives().post(landing, op), op);
}

}  // namespace brant
