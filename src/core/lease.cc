#include "core/lease.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/hmac.h"

namespace brant {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::uint32_t kMagic = 0x62726c01;  // "brl", layout 1
constexpr std::size_t kSignedBytes = 24;      // the rest is the signature

/// So many pings in a lease that 5 % of lost packets, a tenth of the answers, lose nobody in the life of a machine.
constexpr int kPingsPerLease = 40;
constexpr nanoseconds kShortestPeriod = 5ms;
constexpr nanoseconds kLongestPeriod = 250ms;
/// A tick that comes later than that says that this process did not run.
constexpr int kAwakePeriods = 2;
/// A forged refusal is disproved by the answers that go on coming for so long.
constexpr int kRefusedPeriods = 2;

}  // namespace

Lease::Lease(int self, int size, nanoseconds patience, const Key& key)
    : self_(self),
      patience_(patience),
      period_(std::clamp(patience / kPingsPerLease, kShortestPeriod, kLongestPeriod)),
      key_(key),
      lost_(static_cast<std::size_t>(size)) {
  // Nothing that comes from outside shall allocate.
  watched_.reserve(lost_.size());
  due_.reserve(lost_.size() + 1);
  verdicts_.reserve(lost_.size());
}

Lease::Datagram Lease::make(Kind kind, int to, nanoseconds stamp) const noexcept {
  Datagram datagram;
  const std::array<std::uint32_t, 4> head = {kMagic, static_cast<std::uint32_t>(kind),
                                             static_cast<std::uint32_t>(self_), static_cast<std::uint32_t>(to)};
  const std::int64_t time = stamp.count();
  std::memcpy(datagram.data(), head.data(), sizeof head);
  std::memcpy(datagram.data() + sizeof head, &time, sizeof time);
  const Digest digest = hmac_sha256(key_, std::span(datagram).first(kSignedBytes));
  std::copy_n(digest.begin(), kDatagramBytes - kSignedBytes, datagram.begin() + kSignedBytes);
  return datagram;
}

bool Lease::authentic(std::span<const std::byte> datagram) const noexcept {
  if (datagram.size() != kDatagramBytes) return false;
  const Digest digest = hmac_sha256(key_, datagram.first(kSignedBytes));
  return equal_in_constant_time(std::span(digest).first(kDatagramBytes - kSignedBytes), datagram.subspan(kSignedBytes));
}

bool Lease::may_be_peer(int rank) const noexcept {
  return rank >= 0 && static_cast<std::size_t>(rank) < lost_.size() && rank != self_;
}

Lease::Watched* Lease::find(int rank) noexcept {
  const auto found = std::find_if(watched_.begin(), watched_.end(), [&](const Watched& w) { return w.rank == rank; });
  return found == watched_.end() ? nullptr : &*found;
}

void Lease::watch(int rank) noexcept {
  if (!may_be_peer(rank) || lost_[static_cast<std::size_t>(rank)] || find(rank) != nullptr) return;
  watched_.push_back({rank, awake_ - 1ns, false, {}});
}

void Lease::give_up(int rank) noexcept {
  if (!may_be_peer(rank)) return;
  lost_[static_cast<std::size_t>(rank)] = true;
  std::erase_if(watched_, [&](const Watched& watched) { return watched.rank == rank; });
}

void Lease::lose(int rank, Why why) noexcept {
  if (lost_[static_cast<std::size_t>(rank)]) return;
  give_up(rank);
  verdicts_.push_back({rank, why});
}

std::optional<Lease::Outgoing> Lease::hear(std::span<const std::byte> datagram) noexcept {
  ByteReader reader(datagram);
  const auto magic = reader.number<std::uint32_t>();
  const auto kind = static_cast<Kind>(reader.number<std::uint32_t>());
  const auto from = reader.number<std::int32_t>();
  const auto to = reader.number<std::int32_t>();
  const nanoseconds stamp{reader.number<std::int64_t>()};
  bool taken = magic == kMagic && to == self_ && may_be_peer(from) && authentic(datagram);
  std::optional<Outgoing> reply;
  if (taken && kind == Kind::verdict) {
    lose(from, Why::told);
  } else if (taken && lost_[static_cast<std::size_t>(from)]) {
    reply = {from, make(Kind::verdict, from, stamp)};
  } else if (taken && kind == Kind::ping) {
    reply = {from, make(Kind::answer, from, stamp)};
  } else if (taken) {
    taken = kind == Kind::answer && take_answer(from, stamp);
  }
  if (!taken) ++dropped_;
  return reply;
}

/// The stamp says when the ping left: the process was alive then, however long the answer took.
bool Lease::take_answer(int rank, nanoseconds stamp) noexcept {
  if (stamp < 0ns || stamp > awake_) return false;
  Watched* watched = find(rank);
  if (watched == nullptr) {
    if (probed_ != rank || heard_any_) return false;
    ears_open();
    return true;
  }
  if (stamp <= watched->alive) return false;
  if (!heard_any_) ears_open();
  watched->alive = stamp;
  watched->heard = true;
  watched->refused.reset();
  return true;
}

/// Only from now on silence means something.
void Lease::ears_open() noexcept {
  heard_any_ = true;
  for (Watched& watched : watched_) watched.alive = awake_ - 1ns;
}

/// Alone it proves little: a firewall may refuse for a host, and anybody may forge it.
void Lease::refused(int rank) noexcept {
  Watched* watched = find(rank);
  if (watched == nullptr || !watched->heard) return;
  if (!watched->refused) {
    watched->refused = awake_;
  } else if (awake_ - *watched->refused >= kRefusedPeriods * period_) {
    lose(rank, Why::refused);
  }
}

std::span<const Lease::Outgoing> Lease::tick(TimePoint now) noexcept {
  if (last_tick_) awake_ += std::clamp<nanoseconds>(now - *last_tick_, 0ns, kAwakePeriods * period_);
  last_tick_ = now;
  due_.clear();
  if (!heard_any_ && probed_ && find(*probed_) == nullptr)
    due_.push_back({*probed_, make(Kind::ping, *probed_, awake_)});
  for (std::size_t i = 0; i < watched_.size();) {
    const Watched watched = watched_[i];
    if (heard_any_ && awake_ - watched.alive >= patience_) {
      lose(watched.rank, watched.heard ? Why::silent : Why::never_answered);
    } else {
      due_.push_back({watched.rank, make(Kind::ping, watched.rank, awake_)});
      ++i;
    }
  }
  return due_;
}

TimePoint Lease::next() const noexcept {
  if (!last_tick_) return TimePoint{};
  const bool asks = !watched_.empty() || (probed_ && !heard_any_);
  return asks ? *last_tick_ + period_ : kNever;
}

std::vector<Lease::Verdict> Lease::take_verdicts() {
  const std::vector<Verdict> taken(verdicts_);  // a copy: what was reserved stays
  verdicts_.clear();
  return taken;
}

}  // namespace brant
