#include "ops/channel/last_words.h"

#include <new>

#include "base/log.h"
#include "ops/channel/table.h"

namespace brant {

unsigned LastWords::say(Peer& peer) noexcept {
  unsigned words = 0;
  table_.for_each_end_with(peer, [&](ChannelEndpoint& end) noexcept {
    const std::uint64_t sent = end.sends().next_number();
    if (sent == 0) return;
    table_.controls().send(peer, {ChannelControl::Kind::last, end.id().value, end.side(), peer.rank_there, 0, 0, sent});
    ++words;
  });
  return words;
}

void LastWords::on_word(const ChannelControl& control) noexcept {
  const unsigned side = control.sender_side & 1u;
  try {
    sent_there_[end_key(ChannelId{control.channel}, side, control.sender_rank)] = control.number;
    Heard& heard = heard_[control.sender_rank];
    ++heard.words;
    // The farewell may have come before.
    if (heard.ended != nullptr && has_all_of(*heard.ended)) end_all_of(*heard.ended);
  } catch (const std::bad_alloc&) {
    log::error("channel {}: no memory for the last word of rank {}: receives from it end only with its process",
               control.channel, control.sender_rank);
  }
}

bool LastWords::has_all_of(const Peer& peer) const noexcept {
  const auto heard = heard_.find(peer.rank.value);
  return peer.ended && (heard == heard_.end() ? 0 : heard->second.words) >= peer.farewell_words;
}

void LastWords::end_if_known(ChannelEndpoint& endpoint) noexcept {
  const Peer& peer = endpoint.peer();
  if (peer.same_process || !has_all_of(peer)) return;
  const auto word = sent_there_.find(end_key(endpoint.id(), 1 - endpoint.side(), peer.rank.value));
  // An end of which only its numbers were left said nothing: all that it had sent was received.
  const std::uint64_t sent = word == sent_there_.end() ? endpoint.receives().prefix() : word->second;
  const std::size_t ended = endpoint.receives().end_after(sent);
  endpoint.closing().look();
  if (ended == 0 || endpoint.hidden()) return;
  log::warn(
      "channel {}: the program of rank {} (pid {}) has ended normally. It sent {} messages here; what waits for "
      "others, or to be received there, ends with peer_lost",
      endpoint.id().value, peer.rank.value, peer.record.pid, sent);
}

void LastWords::on_farewell(Peer& peer) noexcept {
  try {
    heard_[peer.rank.value].ended = &peer;
  } catch (const std::bad_alloc&) {  // then only what has come by now is known
  }
  if (has_all_of(peer)) end_all_of(peer);
}

void LastWords::forget(std::int32_t rank) noexcept {
  heard_.erase(rank);
  std::erase_if(sent_there_, [rank](const auto& word) { return rank_of_end(word.first) == rank; });
}

void LastWords::end_all_of(const Peer& peer) noexcept {
  table_.for_each_end_with(peer, [this](ChannelEndpoint& end) noexcept { end_if_known(end); });
}

}  // namespace brant
