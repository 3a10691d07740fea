#include "halo.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace jacobi {
namespace {

constexpr std::array<std::string_view, kSides> kSideNames = {"low x", "high x", "low y", "high y", "low z", "high z"};

/// The channel between a block and its neighbour along an axis is named after the lower of the two.
brant::ChannelId channel_between(int processes, int lower, int axis, std::uint32_t generation) {
  const std::uint64_t id =
      (std::uint64_t{generation} * static_cast<std::uint64_t>(processes) + static_cast<std::uint64_t>(lower)) * 3 +
      static_cast<std::uint64_t>(axis);
  // Channel::open refuses what has more than 28 bits.
  return {static_cast<std::uint32_t>(std::min<std::uint64_t>(id, UINT32_MAX))};
}

}  // namespace

HaloExchange::HaloExchange(brant::Runtime& runtime, const Block& block, const Decomposition& decomposition, int rank,
                           brant::Path path, std::uint32_t generation)
    : block_(block) {
  for (int side = 0; side < kSides; ++side) {
    const std::optional<int> neighbour = decomposition.neighbour(rank, side);
    if (!neighbour) continue;
    const brant::ChannelId id =
        channel_between(decomposition.processes(), std::min(rank, *neighbour), axis_of(side), generation);
    links_[static_cast<std::size_t>(side)].emplace(
        side, *neighbour, brant::Channel::open(runtime, brant::Rank{*neighbour}, id, {.path = path}));
    bytes_ += block.message_out(side).bytes;
  }
}

void HaloExchange::post_receives() {
  for (std::optional<Link>& link : links_) {
    if (!link) continue;
    const brant::Buffer landing = block_.message_in(link->side);
    link->incoming.emplace(brant::Moment::delivered,
                           [&](brant::Op& op) noexcept { return link->channel.post_recv(landing, op); });
    if (link->incoming->done()) require(*link, link->incoming->result(), "receive from", landing.bytes);
  }
}

void HaloExchange::post_sends() {
  for (std::optional<Link>& link : links_) {
    if (!link) continue;
    const brant::ConstBuffer face = block_.message_out(link->side);
    link->outgoing.emplace(brant::Moment::source_free,
                           [&](brant::Op& op) noexcept { return link->channel.post_send(face, op); });
    if (link->outgoing->done()) require(*link, link->outgoing->result(), "send to", face.bytes);
  }
}

bool HaloExchange::finished() const noexcept {
  return std::all_of(links_.begin(), links_.end(), [](const std::optional<Link>& link) {
    return !link || (link->incoming->done() && link->outgoing->done());
  });
}

void HaloExchange::complete() {
  for (std::optional<Link>& link : links_) {
    if (!link) continue;
    const std::size_t bytes = block_.message_in(link->side).bytes;
    require(*link, link->incoming->result(), "receive from", bytes);
    require(*link, link->outgoing->result(), "send to", bytes);
    link->incoming.reset();
    link->outgoing.reset();
  }
}

void HaloExchange::require(const Link& link, const brant::OpResult& result, const char* what,
                           std::size_t expected) const {
  const brant::Status status = result.ok() && result.bytes != expected ? brant::Status::truncated : result.status;
  if (status == brant::Status::ok) return;
  throw brant::Error(
      status, fmt::format("halo exchange on the {} side: could not {} rank {} ({} bytes of {} memory, {} moved): {}",
                          kSideNames[static_cast<std::size_t>(link.side)], what, link.neighbour, expected,
                          brant::memory_kind_name(block_.kind()), result.bytes, brant::status_text(status)));
}

}  // namespace jacobi
