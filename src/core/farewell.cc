#include "core/farewell.h"

#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "base/log.h"
#include "core/am_ids.h"

namespace brant {

Farewell::Farewell(const port::JobInfo& job, port::Wire& wire, HeldMessages& messages, HostLinks& links,
                   Commands& commands, Services& services, Peers& peers)
    : job_(job),
      wire_(wire),
      links_(links),
      commands_(commands),
      services_(services),
      peers_(peers),
      talks_(static_cast<std::size_t>(job.size)) {
  messages.claim(am_id::kFarewell, &Farewell::on_word, this);
  const auto greet = [](void* self, Peer& peer) noexcept { static_cast<Farewell*>(self)->greet(peer); };
  peers_.on_connected(greet, this);
}

/// Null without memory: then a peer learns of the end only from the end of the process.
Farewell::Talk* Farewell::talk(const Peer& peer) noexcept {
  std::unique_ptr<Talk>& known = talks_[static_cast<std::size_t>(peer.rank.value)];
  if (known == nullptr) {
    known.reset(new (std::nothrow) Talk);
    if (known != nullptr) known->greeting.on_complete = known->farewell.on_complete = [](port::WireOp&) noexcept {};
  }
  return known.get();
}

Status Farewell::post(Peer& peer, const Word& word, port::WireOp& op) noexcept {
  return wire_.am_send(peer.endpoint, am_id::kFarewell, std::as_bytes(std::span(&word, 1)), {}, op);
}

void Farewell::greet(Peer& peer) noexcept {
  Talk* with = peer.same_process ? nullptr : talk(peer);
  if (with == nullptr) return;
  const Status status = post(peer, {Kind::greeting, job_.rank, 0}, with->greeting);
  if (status != Status::ok && status != Status::in_progress) {
    log::info("rank {} could not be greeted: {}", peer.rank.value, status_text(status));
  }
}

void Farewell::say() noexcept {
  ended_ = true;
  for (Peer& peer : peers_) {
    const auto& with = talks_[static_cast<std::size_t>(peer.rank.value)];
    if (peer.endpoint != nullptr || (with != nullptr && with->greeted_us)) say_to(peer);
  }
}

void Farewell::say_to(Peer& peer) noexcept {
  if (peer.same_process || peer.lost) return;
  Talk* with = talk(peer);
  if (with == nullptr || with->said) return;
  try {
    peers_.connect(peer.rank);  // connects, if only the peer had connected to us
  } catch (const std::exception& error) {
    log::info("no farewell to rank {}: {}", peer.rank.value, error.what());
    with->said = true;
    return;
  }
  if (!std::exchange(with->services_spoke, true)) with->service_words = services_.part_from(peer);
  const Status status = post(peer, {Kind::farewell, job_.rank, with->service_words}, with->farewell);
  with->said = status != Status::limit_reached;
}

void Farewell::on_word(void* self, port::AmMessage& message) noexcept {
  auto& farewell = *static_cast<Farewell*>(self);
  Word word;
  const bool whole = message.header.size() == sizeof(word);
  if (whole) std::memcpy(&word, message.header.data(), sizeof(word));
  const bool known = whole && (word.kind == Kind::greeting || word.kind == Kind::farewell);
  const bool of_the_job = word.rank >= 0 && word.rank < farewell.job_.size;
  if (!known || !of_the_job) {
    farewell.wire_.am_discard(message);
    return farewell.peers_.distrust(word.rank, "a greeting or farewell that contradicts itself");
  }
  farewell.hear(word);
}

void Farewell::hear(const Word& word) noexcept {
  Peer& peer = peers_[word.rank];
  if (word.kind == Kind::greeting) {
    if (Talk* with = talk(peer)) with->greeted_us = true;
    if (ended_) say_to(peer);
    return;
  }
  if (peer.ended) return;
  log::info("the program of rank {} (pid {}) has ended", peer.rank.value, peer.record.pid);
  peer.ended = true;
  peer.farewell_words = word.service_words;
  if (std::exchange(due_, true)) return;
  const auto leave = [](void* context) noexcept { static_cast<Farewell*>(context)->take_leave(); };
  if (commands_.post(leave, this) != Status::ok) take_leave();
}

void Farewell::take_leave() noexcept {
  due_ = false;
  constexpr int kRoundsMax = 64;
  for (int round = 0; round < kRoundsMax; ++round) {
    if (links_.poll() == 0) break;
  }
  for (Peer& peer : peers_) {
    Talk* with = peer.ended ? talk(peer) : nullptr;
    if (with == nullptr || std::exchange(with->parted, true)) continue;
    services_.peer_ended(peer);
  }
}

}  // namespace brant
