#include "channel_halo.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

namespace jacobi {

void ChannelHalo::receive_ghosts() {
  for (Link& link : links_) {
    const brant::Buffer ghosts = block_.message_in(link.side);
    link.incoming.emplace(brant::Moment::delivered,
                          [&](brant::Op& op) noexcept { return link.channel.post_recv(ghosts, op); });
    if (link.incoming->done()) require(link, link.incoming->result(), "receive from", ghosts.bytes);
  }
}

void ChannelHalo::send_faces() {
  for (Link& link : links_) {
    const brant::ConstBuffer face = block_.message_out(link.side);
    link.outgoing.emplace(brant::Moment::source_free,
                          [&](brant::Op& op) noexcept { return link.channel.post_send(face, op); });
    if (link.outgoing->done()) require(link, link.outgoing->result(), "send to", face.bytes);
  }
}

brant::Task<void> ChannelHalo::finish() {
  for (Link& link : links_) {
    const std::size_t bytes = block_.message_in(link.side).bytes;
    require(link, co_await *link.incoming, "receive from", bytes);
    require(link, co_await *link.outgoing, "send to", bytes);
  }
}

void ChannelHalo::require(const Link& link, const brant::OpResult& result, const char* what,
                          std::size_t expected) const {
  static constexpr std::array<std::string_view, kSides> kNames = {"low x",  "high x", "low y",
                                                                  "high y", "low z",  "high z"};
  const brant::Status status = result.ok() && result.bytes != expected ? brant::Status::truncated : result.status;
  if (status == brant::Status::ok) return;
  throw brant::Error(
      status, fmt::format("halo exchange on the {} side: could not {} block {} ({} bytes of {} memory, {} moved): {}",
                          kNames[static_cast<std::size_t>(link.side)], what, link.neighbour, expected,
                          brant::memory_kind_name(block_.kind()), result.bytes, brant::status_text(status)));
}

}  // namespace jacobi
