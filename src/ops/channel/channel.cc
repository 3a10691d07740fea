#include "brant/ops/channel.h"

#include <fmt/format.h>

#include "brant/core/runtime.h"
#include "ops/channel/reserved_ids.h"
#include "ops/channel/shaped_posts.h"
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

Result<Path> Channel::path_of(ConstBuffer source, const Shape& shape) const noexcept {
  if (endpoint_ == nullptr) return Status::invalid_argument;
  Path path = Path::automatic;
  const Status status = endpoint_->paths().of(source, shape, path);
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

Status Channel::post_send(ConstBuffer source, const Shape& shape, Op& op) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  return told_at_once(endpoint_,
                      endpoint_ == nullptr ? Status::invalid_argument : endpoint_->sends().post(source, shape, op), op);
}

Status Channel::post_recv(Buffer landing, Op& op) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  return told_at_once(endpoint_,
                      endpoint_ == nullptr ? Status::invalid_argument : endpoint_->receives().post(landing, op), op);
}

Status Channel::post_recv(Buffer landing, const Shape& shape, Op& op) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  return told_at_once(
      endpoint_, endpoint_ == nullptr ? Status::invalid_argument : receive_in_shape(*endpoint_, landing, shape, op),
      op);
}

}  // namespace brant
