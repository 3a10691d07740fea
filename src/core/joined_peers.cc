#include "core/joined_peers.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/host_name.h"
#include "base/log.h"
#include "base/random_bytes.h"
#include "base/seconds.h"
#include "core/am_ids.h"
#include "core/joined_rank.h"
#include "core/waiting.h"

namespace brant {
namespace {

/// For one that was answered and is never heard of again, though its process lives.
constexpr auto kInvitationLasts = std::chrono::seconds(30);

template <typename T>
T random_number() {
  T number{};
  fill_with_random_bytes(std::as_writable_bytes(std::span(&number, 1)), "the address of this process");
  return number;
}

}  // namespace

JoinedPeers::JoinedPeers(const port::JobInfo& job, Joining joining, port::Wire& wire, HeldMessages& messages,
                         const ProgressClock& clock, Services& services, Peers& peers, Counters& counters)
    : job_(job),
      joining_(joining),
      wire_(wire),
      clock_(clock),
      services_(services),
      peers_(peers),
      counters_(counters) {
  messages.claim(am_id::kJoin, &JoinedPeers::on_message, this);
  peers_.on_parting(&JoinedPeers::on_parting, this);
}

// Who is who
// ---------------------------------------------------------------------------------------------------------------------

JoinIdentity JoinedPeers::own_identity() const {
  const Result<ProcessMark> mark = own_process_mark();
  JoinIdentity own;
  own.job_id = job_.job_id;
  own.host = host_name();
  own.rank = job_.rank;
  if (mark) own.mark = *mark;
  own.record = peers_.mine();
  return own;
}

void JoinedPeers::require_joining(const char* what) const {
  const bool reaches_nobody = joining_ == Joining::if_possible && wire_.capabilities().name == "loopback";
  if (reaches_nobody) {
    throw Error(Status::not_supported, fmt::format("rank {} {}, but was started without a network library: BRANT_JOIN="
                                                   "host says at the start what is wrong with it",
                                                   job_.rank, what));
  }
  if (joining_ != Joining::off) return;
  throw Error(Status::not_supported,
              fmt::format("rank {} {}, but was started without it: set RuntimeOptions::joining, or BRANT_JOIN=host "
                          "(BRANT_JOIN=network between hosts)",
                          job_.rank, what));
}

/// Of a process that this job has had from the start.
std::optional<Rank> JoinedPeers::own_rank_of(const JoinIdentity& identity) const noexcept {
  const Peer* peer = identity.rank < job_.size ? peers_.find(identity.rank) : nullptr;
  const bool same = peer != nullptr && peer->record.wire_address == identity.record.wire_address;
  return same ? std::optional(peer->rank) : std::nullopt;
}

void JoinedPeers::require_usable(const JoinIdentity& identity) const {
  const PeerRecord& mine = peers_.mine();
  const PeerRecord& theirs = identity.record;
  if (!have_one_wire_version(theirs, mine)) {
    throw Error(
        Status::version_mismatch,
        fmt::format("rank {} uses {}, but {} uses {}: mixed versions abort inside the library. Give both the same "
                    "one (BRANT_UCX=wheel|system|PATH), or set BRANT_ALLOW_MIXED_UCX=1 to try",
                    job_.rank, mine.wire_version, text_of(identity), theirs.wire_version));
  }
  // Between hosts the network notices a death; here nobody would, and waits for it would not end.
  if (theirs.host_id != mine.host_id || theirs.pid_namespace == mine.pid_namespace) return;
  throw Error(Status::not_supported,
              fmt::format("{} and rank {} share the memory of one host but not its process numbers, so neither would "
                          "see the other die: start both containers with --pid=host, or without --ipc=host",
                          text_of(identity), job_.rank));
}

JoinedPeers::Joined& JoinedPeers::of(const Peer& peer) noexcept {
  return **std::ranges::find_if(joined_, [&](const auto& joined) { return &joined->peer == &peer; });
}

JoinedPeers::Joined* JoinedPeers::find_token(std::uint64_t token) noexcept {
  const auto found = std::ranges::find(joined_, token, [](const auto& joined) { return joined->token; });
  return found == joined_.end() ? nullptr : found->get();
}

// Coming
// ---------------------------------------------------------------------------------------------------------------------

std::string JoinedPeers::address() {
  require_joining("was asked for an address by which others join it");
  if (!key_) key_ = random_number<JoinKey>();
  return pack(JoinAddress{*key_, own_identity()});
}

JoinedPeers::Joined::Joined(JoinedSlots& in, bool called, JoinIdentity who, const JoinKey& secret, std::uint64_t name)
    : slots(in), peer(in.add(called)), identity(std::move(who)), key(secret), token(name) {
  for (Send& send : sends) {
    send.on_complete = [](port::WireOp& op) noexcept { static_cast<Send&>(op).busy = false; };
  }
}

JoinedPeers::Joined& JoinedPeers::add(JoinIdentity identity, const JoinKey& key, std::uint64_t token, bool called) {
  auto joined = std::make_unique<Joined>(peers_.joined(), called, std::move(identity), key, token);
  Peer& peer = joined->peer;
  peer.rank_in_its_job = joined->identity.rank;
  peer.record = joined->identity.record;
  peer.same_host = peer.record.host_id == peers_.mine().host_id;
  return *joined_.emplace_back(std::move(joined));
}

void JoinedPeers::connect(Joined& joined) {
  Peer& peer = joined.peer;
  const bool marked = peers_.watched_by_kernel(peer) && joined.identity.mark.pid == peer.record.pid;
  const bool ended = marked && check_process(joined.identity.mark) == Status::peer_lost;
  if (ended || !peers_.watch(peer))
    throw Error(Status::peer_lost, fmt::format("the process of {} has ended", text_of(joined.identity)));
  if (Joined* before = find_given_up(joined)) {
    peer.endpoint = std::exchange(before->peer.endpoint, nullptr);
    before->peer.ended = true;
    return peers_.suspect(before->peer);  // not lost here: what comes over the network asks for this too
  }
  const Result<port::WireEndpoint*> endpoint = wire_.connect(peer.record.wire_address);
  if (endpoint) {
    peer.endpoint = *endpoint;
    return;
  }
  throw Error(endpoint.status(),
              fmt::format("rank {} could not connect to {} over {}: {}. {}", job_.rank, text_of(joined.identity),
                          wire_.capabilities().version, status_text(endpoint.status()),
                          peer.same_host ? "Does the process live?"
                                         : "Between hosts both need BRANT_JOIN=network, and a network that reaches the "
                                           "other (brant doctor)"));
}

/// The two ends of a connection are found by counting how often either has connected to the other (see the gotchas page
/// of UCX). So what the other end has not answered stays open, and the next attempt takes it over, at both ends.
JoinedPeers::Joined* JoinedPeers::find_given_up(const Joined& joined) noexcept {
  const auto found = std::ranges::find_if(joined_, [&](const auto& each) {
    const bool here = each->state == State::given_up;
    const bool there = each->state == State::invited && each->peer.ended;
    return (here || there) && each->peer.endpoint != nullptr &&
           each->peer.record.wire_address == joined.peer.record.wire_address;
  });
  return found == joined_.end() ? nullptr : found->get();
}

Rank JoinedPeers::begin_join(std::string_view text) {
  require_joining("was told to join a process");
  JoinAddress address = unpack_join_address(text);
  if (const auto rank = own_rank_of(address.identity)) return *rank;
  require_usable(address.identity);
  Joined& joined = add(std::move(address.identity), address.key, random_number<std::uint64_t>(), true);
  joined.held = true;
  try {
    connect(joined);
    ask(joined);
  } catch (...) {
    part(joined);
    throw;
  }
  return joined.peer.rank;
}

JoinedPeers::Joined* JoinedPeers::find_held(Rank rank) noexcept {
  Peer* peer = joined_rank::is_one(rank.value) ? peers_.joined().find(rank.value) : nullptr;
  if (peer == nullptr) return nullptr;
  Joined& joined = of(*peer);
  return joined.held ? &joined : nullptr;
}

/// One of the own job is there already.
bool JoinedPeers::is_join_decided(Rank rank) noexcept {
  const Joined* asking = find_held(rank);
  return asking == nullptr || asking->state == State::open || asking->peer.lost || asking->peer.suspected;
}

void JoinedPeers::end_join(Rank rank, std::chrono::nanoseconds limit) {
  Joined* joined = find_held(rank);
  if (joined == nullptr) return;
  if (joined->state != State::open || joined->peer.lost) fail_to_join(*joined, limit);
  joined->held = false;
}

Rank JoinedPeers::join(std::string_view text, std::chrono::nanoseconds limit, Waiting& waiting) {
  struct Asking {
    JoinedPeers& peers;
    Rank rank;
  } asking{*this, begin_join(text)};
  const auto decided = [](void* context) noexcept {
    const auto& [peers, rank] = *static_cast<Asking*>(context);
    return peers.is_join_decided(rank);
  };
  static_cast<void>(waiting.wait_quietly(decided, &asking, limit));
  end_join(asking.rank, limit);
  return asking.rank;
}

void JoinedPeers::ask(Joined& joined) {
  joined.payload = pack(own_identity());
  if (joined.payload.size() > wire_.capabilities().am_eager_bytes_max) {
    throw Error(
        Status::limit_reached,
        fmt::format("what rank {} tells {} of itself has {} bytes, of {}: its network has too many devices. Name "
                    "those that are to be used (UCX_NET_DEVICES)",
                    job_.rank, text_of(joined.identity), joined.payload.size(),
                    wire_.capabilities().am_eager_bytes_max));
  }
  if (const Status status = say(joined, Kind::ask, joined.payload); status != Status::ok) {
    throw Error(status, fmt::format("rank {} could not ask {} to let it join: {}", job_.rank, text_of(joined.identity),
                                    status_text(status)));
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
  if (gone) throw Error(Status::peer_lost, fmt::format("{} ended before rank {} had joined it", who, job_.rank));
  throw Error(Status::timed_out,
              fmt::format("{} has not answered rank {} for {} s: its program makes no progress (Worker::progress, "
                          "Runtime::accept), or takes nobody with this address any more, as its log then says",
                          who, job_.rank, in_seconds(limit)));
}

std::optional<Rank> JoinedPeers::take_accepted() noexcept {
  if (!has_accepted()) return std::nullopt;
  const Rank rank = accepted_.front();
  accepted_.pop_front();
  return rank;
}

bool JoinedPeers::has_accepted() noexcept {
  const auto is_there = [this](Rank rank) {
    const Peer* peer = peers_.joined().find(rank.value);
    return peer != nullptr && !peer->lost;
  };
  while (!accepted_.empty() && !is_there(accepted_.front())) accepted_.pop_front();
  return !accepted_.empty();
}

// Going
// ---------------------------------------------------------------------------------------------------------------------

bool JoinedPeers::begin_leave(Rank rank) {
  if (!joined_rank::is_one(rank.value)) {
    throw Error(Status::invalid_argument,
                fmt::format("rank {} has not joined rank {} after the start: the ranks of a job leave it with their "
                            "Runtime",
                            rank.value, job_.rank));
  }
  Peer* peer = peers_.joined().find(rank.value);
  if (peer == nullptr || peer->lost) return false;
  Joined& joined = of(*peer);
  joined.held = true;
  static_cast<void>(say(joined, Kind::farewell));
  return true;
}

bool JoinedPeers::is_leave_decided(Rank rank) noexcept {
  const Joined* leaving = find_held(rank);
  return leaving == nullptr || leaving->heard || leaving->peer.lost || leaving->peer.suspected;
}

void JoinedPeers::end_leave(Rank rank, std::chrono::nanoseconds limit) noexcept {
  Joined* joined = find_held(rank);
  if (joined == nullptr) return;
  if (!is_leave_decided(rank)) {
    log::warn("{} has not heard for {} s that rank {} leaves it, which leaves all the same", text_of(joined->identity),
              in_seconds(limit), job_.rank);
  }
  part(*joined);
}

void JoinedPeers::leave(Rank rank, std::chrono::nanoseconds limit, Waiting& waiting) {
  if (!begin_leave(rank)) return;
  struct Leaving {
    JoinedPeers& peers;
    Rank rank;
  } leaving{*this, rank};
  const auto decided = [](void* context) noexcept {
    const auto& [peers, gone] = *static_cast<Leaving*>(context);
    return peers.is_leave_decided(gone);
  };
  static_cast<void>(waiting.wait_quietly(decided, &leaving, limit));
  end_leave(rank, limit);
}

void JoinedPeers::leave_all(std::chrono::nanoseconds limit, Waiting& waiting) noexcept {
  key_.reset();
  for (std::size_t i = 0; i < joined_.size(); ++i) {
    if (!joined_[i]->peer.lost) static_cast<void>(say(*joined_[i], Kind::farewell));
  }
  const auto decided = [](void* context) noexcept {
    return std::ranges::all_of(static_cast<JoinedPeers*>(context)->joined_, [](const auto& joined) {
      return joined->heard || joined->state == State::given_up || joined->peer.lost || joined->peer.suspected;
    });
  };
  static_cast<void>(waiting.wait_quietly(decided, this, limit));
  for (std::size_t i = 0; i < joined_.size(); ++i) part(*joined_[i]);
}

/// Nothing is left of the connection, but for what the program has open with it.
void JoinedPeers::part(Joined& joined) noexcept {
  joined.peer.ended = true;
  peers_.lose(joined.peer);
  joined.held = false;
}

void JoinedPeers::on_parting(void* self, Peer& peer) noexcept {
  auto& peers = *static_cast<JoinedPeers*>(self);
  Joined& joined = peers.of(peer);
  if (!peer.ended) return;
  if (!joined.heard) static_cast<void>(peers.say(joined, Kind::heard));  // it waits for that
  log::info("{}, joined as rank {}, has left", text_of(joined.identity), peer.rank.value);
}

/// So that the record of the peer can go.
bool JoinedPeers::is_forgotten(Joined& joined) noexcept {
  const bool sends = std::ranges::any_of(joined.sends, [](const Send& send) { return send.busy; });
  return !joined.held && !sends && joined.peer.outstanding.empty() && services_.forget(joined.peer);
}

void JoinedPeers::look_around() noexcept {
  for (const auto& joined : joined_) {
    const bool invited = joined->state == State::invited && !joined->peer.lost;
    if (invited && clock_.recently() - joined->invited_at > kInvitationLasts) peers_.suspect(joined->peer);
  }
  std::erase_if(joined_, [this](const auto& joined) {
    if (!joined->peer.lost || !is_forgotten(*joined)) return false;
    std::erase(accepted_, joined->peer.rank);  // where nobody calls accept
    return true;
  });
}

}  // namespace brant
