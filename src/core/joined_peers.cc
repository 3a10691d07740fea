#include "core/joined_peers.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "core/am_ids.h"

namespace brant {
namespace {

/// For one that was answered and is never heard of again, though its process lives.
constexpr auto kInvitationLasts = std::chrono::seconds(30);

template <typename T>
T random_number() {
  T number{};
  if (::getrandom(&number, sizeof(number), 0) != static_cast<ssize_t>(sizeof(number)))
    throw Error(Status::io_error, "the kernel gave no random bytes for the address of this process");
  return number;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

double in_seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

JoinedPeers::JoinedPeers(Engine& engine) : engine_(engine) {
  engine.claim_am(am_id::kJoin, &JoinedPeers::on_message, this);
}

JoinedPeers& JoinedPeers::of(Engine& engine) noexcept { return *engine.joined_; }

Peer* find_joined(JoinedPeers& joined, std::int32_t rank) noexcept { return joined.find(rank); }

// Who is who
// ---------------------------------------------------------------------------------------------------------------------

const PeerRecord& JoinedPeers::own_record() const noexcept {
  return engine_.peers_[static_cast<std::size_t>(engine_.job().rank)].record;
}

JoinIdentity JoinedPeers::own_identity() const {
  const Result<ProcessMark> mark = own_process_mark();
  JoinIdentity own;
  own.job_id = engine_.job().job_id;
  own.host = host_name();
  own.rank = engine_.job().rank;
  if (mark) own.mark = *mark;
  own.record = own_record();
  return own;
}

void JoinedPeers::require_joining(const char* what) const {
  if (engine_.options().joining != Joining::off) return;
  throw Error(Status::not_supported,
              fmt::format("rank {} {}, but was started without it: set RuntimeOptions::joining, or BRANT_JOIN=host "
                          "(BRANT_JOIN=network between hosts)",
                          engine_.job().rank, what));
}

/// Of a process that this job has had from the start.
std::optional<Rank> JoinedPeers::own_rank_of(const JoinIdentity& identity) const noexcept {
  const Peer* peer = identity.rank < engine_.job().size ? engine_.find_peer(identity.rank) : nullptr;
  const bool same = peer != nullptr && peer->record.wire_address == identity.record.wire_address;
  return same ? std::optional(peer->rank) : std::nullopt;
}

void JoinedPeers::require_wire(const JoinIdentity& identity) const {
  if (have_one_wire_version(identity.record, own_record())) return;
  throw Error(
      Status::version_mismatch,
      fmt::format("rank {} uses {}, but {} uses {}: mixed versions abort inside the library. Give both the same "
                  "one (BRANT_UCX=wheel|system|PATH), or set BRANT_ALLOW_MIXED_UCX=1 to try",
                  engine_.job().rank, own_record().wire_version, text_of(identity), identity.record.wire_version));
}

Peer& JoinedPeers::get(Rank rank) {
  Peer* peer = find(rank.value);
  if (peer == nullptr) {
    throw Error(Status::peer_lost, fmt::format("the process that was joined as rank {} has left", rank.value));
  }
  if (!peer->lost) return *peer;
  throw Error(Status::peer_lost, fmt::format("rank {}, which is {}, {}", rank.value, text_of(of(*peer).identity),
                                             peer->ended ? "has left" : "is gone"));
}

// Coming
// ---------------------------------------------------------------------------------------------------------------------

std::string JoinedPeers::address() {
  require_joining("was asked for an address by which others join it");
  if (!key_) key_ = random_number<JoinKey>();
  return pack(JoinAddress{*key_, own_identity()});
}

JoinedPeers::Joined& JoinedPeers::take_slot(JoinIdentity identity, const JoinKey& key, std::uint64_t token,
                                            bool called) {
  auto free = std::find(slots_.begin(), slots_.end(), nullptr);
  if (free == slots_.end()) {
    if (slots_.size() == joined_rank::kSlots) {
      throw Error(Status::limit_reached,
                  fmt::format("{} processes have joined rank {}, which are as many as it takes: `Runtime::leave` those "
                              "that are not needed, and close what is open with them",
                              slots_.size(), engine_.job().rank));
    }
    generations_.reserve(slots_.size() + 1);
    free = slots_.emplace(slots_.end());
    generations_.push_back(0);
  }
  *free = std::make_unique<Joined>(std::move(identity), key, token);
  Joined& joined = **free;
  const auto slot = static_cast<std::uint32_t>(free - slots_.begin());
  Peer& peer = joined.peer;
  peer.rank = Rank{joined_rank::make(slot, generations_[slot], called)};
  peer.rank_in_its_job = joined.identity.rank;
  peer.joined = true;
  peer.record = joined.identity.record;
  peer.same_host = peer.record.host_id == own_record().host_id;
  for (Send& send : joined.sends) {
    send.on_complete = [](port::WireOp& op) noexcept { static_cast<Send&>(op).busy = false; };
  }
  return joined;
}

void JoinedPeers::give_slot_back(Joined& joined) noexcept {
  const std::uint32_t slot = joined_rank::slot_of(joined.peer.rank.value);
  generations_[slot] = (generations_[slot] + 1) % joined_rank::kGenerations;
  slots_[slot].reset();
}

void JoinedPeers::connect(Joined& joined) {
  Peer& peer = joined.peer;
  if (engine_.watched_by_kernel(peer)) {
    const bool marked = joined.identity.mark.pid == peer.record.pid;
    const bool lives = (!marked || check_process(joined.identity.mark) != Status::peer_lost) &&
                       engine_.detector_.watch(peer.rank.value, peer.record.pid);
    if (!lives) throw Error(Status::peer_lost, fmt::format("the process of {} has ended", text_of(joined.identity)));
  }
  if (Joined* before = find_given_up(joined)) {
    peer.endpoint = std::exchange(before->peer.endpoint, nullptr);
    return part(*before);
  }
  const Result<port::WireEndpoint*> endpoint = engine_.wire().connect(peer.record.wire_address);
  if (endpoint) {
    peer.endpoint = *endpoint;
    return;
  }
  throw Error(
      endpoint.status(),
      fmt::format("rank {} could not connect to {} over {}: {}. {}", engine_.job().rank, text_of(joined.identity),
                  engine_.wire().capabilities().version, status_text(endpoint.status()),
                  peer.same_host ? "Does the process live?"
                                 : "Between hosts both need BRANT_JOIN=network, and a network that reaches the "
                                   "other (brant doctor)"));
}

/// The two ends of a connection are found by counting how often either has connected to the other (see the gotchas page
/// of UCX). So what the other end has not answered stays open, and the next attempt takes it over.
JoinedPeers::Joined* JoinedPeers::find_given_up(const Joined& joined) noexcept {
  for (const auto& each : slots_) {
    const bool there = each != nullptr && each->state == State::given_up && each->peer.endpoint != nullptr;
    if (there && each->peer.record.wire_address == joined.peer.record.wire_address) return each.get();
  }
  return nullptr;
}

Rank JoinedPeers::join(std::string_view text, std::chrono::nanoseconds limit) {
  require_joining("was told to join a process");
  JoinAddress address = unpack_join_address(text);
  if (const auto rank = own_rank_of(address.identity)) return *rank;
  require_wire(address.identity);
  Joined& joined = take_slot(std::move(address.identity), address.key, random_number<std::uint64_t>(), true);
  joined.held = true;
  try {
    connect(joined);
    ask(joined);
  } catch (...) {
    part(joined);
    throw;
  }
  const auto decided = [](void* context) noexcept {
    const auto& asking = *static_cast<Joined*>(context);
    return asking.state == State::open || asking.peer.lost || asking.peer.suspected;
  };
  static_cast<void>(engine_.wait_quietly(decided, &joined, limit));
  if (joined.state != State::open || joined.peer.lost) fail_to_join(joined, limit);
  joined.held = false;
  return joined.peer.rank;
}

void JoinedPeers::ask(Joined& joined) {
  joined.payload = pack(own_identity());
  if (joined.payload.size() > engine_.wire().capabilities().am_eager_bytes_max) {
    throw Error(
        Status::limit_reached,
        fmt::format("what rank {} tells {} of itself has {} bytes, of {}: its network has too many devices. Name "
                    "those that are to be used (UCX_NET_DEVICES)",
                    engine_.job().rank, text_of(joined.identity), joined.payload.size(),
                    engine_.wire().capabilities().am_eager_bytes_max));
  }
  if (const Status status = say(joined, Kind::ask, joined.payload); status != Status::ok) {
    throw Error(status, fmt::format("rank {} could not ask {} to let it join: {}", engine_.job().rank,
                                    text_of(joined.identity), status_text(status)));
  }
}

void JoinedPeers::fail_to_join(Joined& joined, std::chrono::nanoseconds limit) {
  const bool gone = joined.peer.lost || joined.peer.suspected;
  const std::string who = text_of(joined.identity);
  if (gone) {
    part(joined);
  } else {
    static_cast<void>(say(joined, Kind::farewell));  // it may still answer
    joined.state = State::given_up;
    joined.held = false;
  }
  if (gone)
    throw Error(Status::peer_lost, fmt::format("{} ended before rank {} had joined it", who, engine_.job().rank));
  throw Error(Status::timed_out,
              fmt::format("{} has not answered rank {} for {} s: its program makes no progress (Worker::progress, "
                          "Runtime::accept), or takes nobody with this address any more, as its log then says",
                          who, engine_.job().rank, in_seconds(limit)));
}

std::optional<Rank> JoinedPeers::take_accepted() noexcept {
  if (!has_accepted()) return std::nullopt;
  const Rank rank = accepted_.front();
  accepted_.pop_front();
  return rank;
}

bool JoinedPeers::has_accepted() noexcept {
  const auto is_there = [this](Rank rank) {
    const Peer* peer = find(rank.value);
    return peer != nullptr && !peer->lost;
  };
  while (!accepted_.empty() && !is_there(accepted_.front())) accepted_.pop_front();
  return !accepted_.empty();
}

// Going
// ---------------------------------------------------------------------------------------------------------------------

void JoinedPeers::leave(Rank rank, std::chrono::nanoseconds limit) {
  if (!joined_rank::is_one(rank.value)) {
    throw Error(Status::invalid_argument,
                fmt::format("rank {} has not joined rank {} after the start: the ranks of a job leave it with their "
                            "Runtime",
                            rank.value, engine_.job().rank));
  }
  Peer* peer = find(rank.value);
  if (peer == nullptr || peer->lost) return;
  Joined& joined = of(*peer);
  joined.held = true;
  static_cast<void>(say(joined, Kind::farewell));
  const auto decided = [](void* context) noexcept {
    const auto& leaving = *static_cast<Joined*>(context);
    return leaving.heard || leaving.peer.lost || leaving.peer.suspected;
  };
  if (!engine_.wait_quietly(decided, &joined, limit)) {
    log::warn("{} has not heard for {} s that rank {} leaves it, which leaves all the same", text_of(joined.identity),
              in_seconds(limit), engine_.job().rank);
  }
  part(joined);
}

void JoinedPeers::leave_all(std::chrono::nanoseconds limit) noexcept {
  key_.reset();
  for_each([this](Peer& peer) {
    if (!peer.lost) static_cast<void>(say(of(peer), Kind::farewell));
  });
  const auto decided = [](void* context) noexcept {
    const auto& slots = static_cast<JoinedPeers*>(context)->slots_;
    return std::ranges::all_of(slots, [](const auto& joined) {
      return joined == nullptr || joined->heard || joined->state == State::given_up || joined->peer.lost ||
             joined->peer.suspected;
    });
  };
  static_cast<void>(engine_.wait_quietly(decided, this, limit));
  for_each([this](Peer& peer) { part(of(peer)); });
}

/// Nothing is left of the connection, but for what the program has open with it.
void JoinedPeers::part(Joined& joined) noexcept {
  joined.peer.ended = true;
  engine_.lose(joined.peer);
  joined.held = false;
}

void JoinedPeers::on_parting(Peer& peer) noexcept {
  Joined& joined = of(peer);
  engine_.detector_.forget(peer.rank.value);
  if (peer.ended && peer.endpoint != nullptr && !joined.heard) {
    // It waits for that, and what is not sent now never will be.
    constexpr int kRounds = 64;
    for (int round = 0; say(joined, Kind::heard) == Status::limit_reached && round < kRounds; ++round)
      static_cast<void>(engine_.wire().progress());
  }
  if (peer.ended) log::info("{}, joined as rank {}, has left", text_of(joined.identity), peer.rank.value);
}

/// So that the record of the peer can go. Those that came later use those that came before.
bool JoinedPeers::is_forgotten(Joined& joined) noexcept {
  const bool sends = std::ranges::any_of(joined.sends, [](const Send& send) { return send.busy; });
  if (joined.held || sends || !joined.peer.outstanding.empty()) return false;
  const auto& services = engine_.services_;
  return std::all_of(services.rbegin(), services.rend(),
                     [&](const auto& service) { return service.second->forget(joined.peer); });
}

void JoinedPeers::look_around() noexcept {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    Joined* joined = slots_[slot].get();
    if (joined == nullptr) continue;
    if (!joined->peer.lost) {
      const bool silent = joined->state == State::invited && engine_.recently() - joined->invited_at > kInvitationLasts;
      if (silent) engine_.suspect(joined->peer);
    } else if (is_forgotten(*joined)) {
      give_slot_back(*joined);
    }
  }
}

}  // namespace brant
