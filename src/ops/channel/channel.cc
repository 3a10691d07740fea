#include "brant/ops/channel.h"

#include <fmt/format.h>

#include "brant/core/runtime.h"
#include "core/told_at_once.h"
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

namespace {

template <typename Choose>
Result<Path> path_by(ChannelEndpoint* end, Choose&& choose) noexcept {
  Path path = Path::automatic;
  const Status status = end == nullptr ? Status::invalid_argument : choose(end->paths(), path);
  if (status != Status::ok) return status;
  return path;
}

template <typename Post>
Status post_to(ChannelEndpoint* end, Op& op, Post&& post) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  const Status status = end == nullptr ? Status::invalid_argument : post(*end);
  if (end != nullptr && status != Status::in_progress) end->engine().counters().count_outcome(status);
  return told_at_once(status, op);
}

}  // namespace

Result<Path> Channel::path_of(MemoryKind kind, std::size_t bytes) const noexcept {
  if (kind == MemoryKind::detect) return Status::invalid_argument;
  return path_by(endpoint_, [&](ChannelPaths& paths, Path& path) noexcept {
    return paths.choose(kind, bytes, path, kind == MemoryKind::host);
  });
}

Result<Path> Channel::path_of(ConstBuffer source) const noexcept {
  return path_by(endpoint_, [&](ChannelPaths& paths, Path& path) noexcept { return paths.of(source, path); });
}

Result<Path> Channel::path_of(ConstBuffer source, const Shape& shape) const noexcept {
  return path_by(endpoint_, [&](ChannelPaths& paths, Path& path) noexcept { return paths.of(source, shape, path); });
}

Status Channel::post_send(ConstBuffer source, Op& op) noexcept {
  return post_to(endpoint_, op, [&](ChannelEndpoint& end) noexcept { return end.sends().post(source, op); });
}

Status Channel::post_send(ConstBuffer source, const Shape& shape, Op& op) noexcept {
  return post_to(endpoint_, op, [&](ChannelEndpoint& end) noexcept { return end.sends().post(source, shape, op); });
}

Status Channel::post_recv(Buffer landing, Op& op) noexcept {
  return post_to(endpoint_, op, [&](ChannelEndpoint& end) noexcept { return end.receives().post(landing, op); });
}

Status Channel::post_recv(Buffer landing, const Shape& shape, Op& op) noexcept {
  return post_to(endpoint_, op, [&](ChannelEndpoint& end) noexcept { return end.receives().post(landing, shape, op); });
}

}  // namespace brant
