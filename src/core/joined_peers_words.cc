// What joined processes tell each other.
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "core/am_ids.h"
#include "core/joined_peers.h"

namespace brant {
namespace {

constexpr int kRoundsForRoom = 64;

/// Whether the other end of a connection may have this number for us, which says who called: the two have two sides.
bool fits(std::int32_t number, bool we_called) noexcept {
  const unsigned side = we_called ? 0 : 1;
  return joined_rank::is_one(number) && joined_rank::side_of(number) == side;
}

}  // namespace

Digest JoinedPeers::proof_of(const JoinKey& key, const Word& word, std::span<const std::byte> payload) {
  std::vector<std::byte> text(offsetof(Word, proof) + payload.size());
  std::memcpy(text.data(), &word, offsetof(Word, proof));
  if (!payload.empty()) std::memcpy(text.data() + offsetof(Word, proof), payload.data(), payload.size());
  return hmac_sha256(key, text);
}

/// ok: the network has it. The payload stays in place until then. What finds no room is tried again for a while: each
/// word is said once, and the other end waits for it.
Status JoinedPeers::say(Joined& joined, Kind kind, std::span<const std::byte> payload) noexcept {
  Send& send = joined.sends[static_cast<std::size_t>(kind)];
  if (joined.peer.endpoint == nullptr || send.busy) return Status::ok;
  Word word{kind, joined.peer.rank.value, joined.token};
  try {
    word.proof = proof_of(joined.key, word, payload);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  const ConstBuffer behind(payload.data(), payload.size(), MemoryKind::host);
  const auto header = std::as_bytes(std::span(&word, 1));
  Status status = Status::limit_reached;
  for (int round = 0; status == Status::limit_reached && round < kRoundsForRoom; ++round) {
    if (round != 0) static_cast<void>(wire_.progress());
    status = wire_.am_send(joined.peer.endpoint, am_id::kJoin, header, behind, send);
  }
  send.busy = status == Status::in_progress;
  return send.busy ? Status::ok : status;
}

void JoinedPeers::refuse(const char* why) noexcept {
  counters_.bad_records.add();
  if (std::exchange(refused_told_, true)) return;
  log::warn(
      "somebody wanted to join rank {} and is refused, as all such are: {}. Who may join gets the address of this very "
      "process (Runtime::address)",
      job_.rank, why);
}

void JoinedPeers::on_message(void* self, port::AmMessage& message) noexcept {
  auto& peers = *static_cast<JoinedPeers*>(self);
  Word word;
  const bool complete = message.bytes == 0 || message.data != nullptr;
  if (peers.closed_ || !complete || message.header.size() != sizeof(word)) {
    peers.wire_.am_discard(message);
    if (!peers.closed_) peers.refuse("what it says is no word of this version of brant");
    return;
  }
  std::memcpy(static_cast<void*>(&word), message.header.data(), sizeof(word));
  try {
    peers.hear(word, std::span(message.data, message.bytes));
  } catch (const Error& error) {
    log::warn("a process that wanted to join rank {} cannot: {}", peers.job_.rank, error.what());
  } catch (const std::bad_alloc&) {
    log::error("no memory for a process that wants to join rank {}", peers.job_.rank);
  }
}

void JoinedPeers::hear(const Word& word, std::span<const std::byte> payload) {
  Joined* joined = find_token(word.token);
  if (word.kind == Kind::ask) {
    if (joined == nullptr) hear_ask(word, payload);
    return;
  }
  if (joined == nullptr || joined->peer.lost) return;  // it has left, or was given up
  if (!equal_in_constant_time(word.proof, proof_of(joined->key, word, payload)))
    return refuse("it speaks for another process, and has not its key");
  switch (word.kind) {
    case Kind::answer: return hear_answer(*joined, word);
    case Kind::ready:
      if (joined->state != State::invited) return;
      joined->state = State::open;
      accepted_.push_back(joined->peer.rank);
      return;
    case Kind::farewell: joined->peer.ended = true; return peers_.suspect(joined->peer);
    case Kind::heard:
      joined->heard = true;
      joined->peer.ended = true;
      if (joined->state == State::given_up) peers_.suspect(joined->peer);
      return;
    default: return refuse("what it says is no word of this version of brant");
  }
}

void JoinedPeers::hear_ask(const Word& word, std::span<const std::byte> payload) {
  if (!key_) return refuse("this process has given no address to anybody, or takes nobody any more");
  if (!equal_in_constant_time(word.proof, proof_of(*key_, word, payload)))
    return refuse("it does not know the key of the address");
  if (!fits(word.number, false)) return refuse("the number that it gives this process is none");
  JoinIdentity identity = unpack_join_identity(payload);
  require_usable(identity);
  Joined& joined = add(std::move(identity), *key_, word.token, false);
  joined.peer.rank_there = word.number;
  joined.state = State::invited;
  joined.invited_at = clock_.recently();
  try {
    connect(joined);
  } catch (...) {
    peers_.suspect(joined.peer);
    throw;
  }
  const Status status = say(joined, Kind::answer);
  if (status == Status::ok) return;
  log::warn("{} could not be answered: {}", text_of(joined.identity), status_text(status));
  peers_.suspect(joined.peer);
}

void JoinedPeers::hear_answer(Joined& joined, const Word& word) noexcept {
  if (joined.state != State::asking) return;
  if (!fits(word.number, true)) return refuse("the number that it gives this process is none");
  joined.peer.rank_there = word.number;
  joined.state = State::open;
  if (say(joined, Kind::ready) != Status::ok) peers_.suspect(joined.peer);
}

}  // namespace brant
