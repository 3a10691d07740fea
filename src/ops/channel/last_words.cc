// What channels have to say when a program ends: how much each end has sent, so that the other end knows what still
// comes, and ends the rest of its receives at once.
#include "base/log.h"
#include "ops/channel/table.h"

namespace brant {

unsigned ChannelTable::part_from(Peer& peer) noexcept {
  unsigned words = 0;
  for (const auto& [key, endpoint] : endpoints_) {
    if (&endpoint->peer() != &peer || endpoint->sends().next_number() == 0) continue;
    send_control(peer, {ChannelControl::Kind::last, endpoint->id().value, endpoint->side(), engine_.job().rank, 0, 0,
                        endpoint->sends().next_number()});
    ++words;
  }
  return words;
}

void ChannelTable::on_last_word(const ChannelControl& control) noexcept {
  const unsigned side = control.sender_side & 1u;
  try {
    sent_there_[end_key(ChannelId{control.channel}, side, control.sender_rank)] = control.number;
    LastWords& words = last_words_[control.sender_rank];
    ++words.heard;
    // The farewell may have come before.
    if (words.ended != nullptr && has_all_last_words(*words.ended)) end_all_of(*words.ended);
  } catch (const std::bad_alloc&) {
    log::error("channel {}: no memory for the last word of rank {}: receives from it end only with its process",
               control.channel, control.sender_rank);
  }
}

bool ChannelTable::has_all_last_words(const Peer& peer) const noexcept {
  const auto words = last_words_.find(peer.rank.value);
  return peer.ended && (words == last_words_.end() ? 0 : words->second.heard) >= peer.farewell_words;
}

void ChannelTable::end_if_known(ChannelEndpoint& endpoint) noexcept {
  const Peer& peer = endpoint.peer();
  if (peer.same_process || !has_all_last_words(peer)) return;
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

void ChannelTable::peer_ended(Peer& peer) noexcept {
  try {
    last_words_[peer.rank.value].ended = &peer;
  } catch (const std::bad_alloc&) {  // then only what has come by now is known
  }
  if (has_all_last_words(peer)) end_all_of(peer);
}

void ChannelTable::end_all_of(const Peer& peer) noexcept {
  for (const auto& [key, endpoint] : endpoints_) {
    if (&endpoint->peer() == &peer) end_if_known(*endpoint);
  }
}

}  // namespace brant
