#include "ops/coll/houses.h"

#include <algorithm>
#include <cstring>

#include "ops/coll/board_rounds.h"
#include "ops/coll/extent.h"

namespace brant::coll {
Houses::Houses(std::span<const unsigned> leaders, unsigned self) {
  for (unsigned leader = 0; leader < leaders.size(); ++leader) {
    if (leaders[leader] != leader) continue;
    std::vector<unsigned> house;
    for (unsigned m = 0; m < leaders.size(); ++m) {
      if (leaders[m] != leader) continue;
      if (m == self) {
        own_ = all_.size();
        place_ = static_cast<unsigned>(house.size());
      }
      house.push_back(m);
    }
    all_.push_back(std::move(house));
  }
}

bool Houses::are_worth_it() const noexcept {
  return all_.size() > 1 && std::any_of(all_.begin(), all_.end(), [](const auto& house) { return house.size() > 1; });
}

HouseRounds::HouseRounds(Houses houses, std::byte* memory, Mail& mail, const Members& members,
                         std::span<Peer* const> peers)
    : houses_(std::move(houses)),
      board_(memory, static_cast<unsigned>(houses_.own().size()), houses_.place()),
      mail_(mail),
      members_(members) {
  for (const unsigned m : houses_.own()) {
    if (peers[m] != nullptr) beside_.push_back(peers[m]);
  }
  if (houses_.leads()) packed_.resize(kSlotBytes);
}

void HouseRounds::begin(std::uint64_t call) noexcept {
  call_ = call;
  round_ = 0;
  sent_ = received_ = 0;
}

HouseRounds::Call HouseRounds::call_of(const Work& work, const Plan& plan) const noexcept {
  if (plan.algorithm == Algorithm::partials)
    return {work, plan, static_cast<std::size_t>(piece_of(work.bytes, plan.piece, round_).bytes)};
  const std::size_t shares = shares_room(work.kind) ? members_.count : 1;
  return {work, plan, static_cast<std::size_t>(work.bytes) * shares};
}

bool HouseRounds::shows(std::size_t house, const Work& work) const noexcept {
  if (!comes_from_root(work.kind)) return true;
  const auto& members = houses_.all()[house];
  return std::binary_search(members.begin(), members.end(), work.root);
}

/// What the leader of a house says to the others.
std::size_t HouseRounds::message_bytes(std::size_t house, const Call& call) const noexcept {
  if (call.in_partials()) return call.room;
  return shows(house, call.work) ? call.room * houses_.all()[house].size() : 0;
}

/// What those here show goes into the leader's next slot, where all will look, and into the message for other leaders.
void HouseRounds::collect(const Call& call) noexcept {
  const std::size_t room = call.room;
  if (room == 0) return;
  if (call.in_partials()) return combine_house(call);
  for (unsigned place = 0; place < houses_.own().size(); ++place) {
    std::memcpy(packed_.data() + place * room, board_.slot(place), room);
    std::memcpy(board_.own_next_slot() + houses_.own()[place] * room, board_.slot(place), room);
  }
}

/// The same of partials.
void HouseRounds::combine_house(const Call& call) noexcept {
  const void* inputs[kBoardMembersMax];
  const auto count = static_cast<unsigned>(houses_.own().size());
  for (unsigned place = 0; place < count; ++place) inputs[place] = board_.slot(place);
  fold(call.work.folding, std::span(inputs, count), packed_.data(), call.room / call.work.element,
       board_.own_next_slot() + houses_.own_place() * call.room);
}

/// In the order of hosts, which all leaders know alike.
void HouseRounds::combine_all(const Call& call) noexcept {
  const void* inputs[kBoardMembersMax];
  std::byte* const slot = board_.own_slot();
  for (unsigned house = 0; house < count(); ++house) inputs[house] = slot + house * call.room;
  fold(call.work.folding, std::span(inputs, count()), slot, call.room / call.work.element);
}

/// What the leader shows.
void HouseRounds::take(BoardRounds& rounds, const Call& call) noexcept {
  if (!call.in_partials()) return rounds.take_from(board_.slot(0), call.room);
  const Work& work = call.work;
  if (call.room == 0 || (work.kind == CollectiveKind::reduce && !work.is_root(members_))) return;
  std::memcpy(work.out + piece_of(work.bytes, call.plan.piece, round_).offset, board_.slot(0), call.room);
}

Status HouseRounds::exchange(const Call& call, Fault& fault) noexcept {
  const std::size_t houses = houses_.all().size(), own = houses_.own_place();
  blocked_ = false;
  exchanges_ = true;
  for (; sent_ + 1 < houses; ++sent_) {
    const unsigned leader = houses_.all()[(own + sent_ + 1) % houses].front();
    const Status status =
        mail_.send(leader, MailKind::data, call_, call.work.words, {packed_.data(), message_bytes(own, call)});
    if (status == Status::ok) continue;
    blocked_ = status == Status::limit_reached;
    if (blocked_) return Status::in_progress;
    fault.why = status == Status::peer_lost   ? Fault::Why::lost
                : status == Status::no_memory ? Fault::Why::no_memory
                                              : Fault::Why::network;
    fault.member = status == Status::no_memory ? members_.self : leader;
    return status;
  }
  for (; received_ + 1 < houses; ++received_, ++moved_) {
    const Status status = receive_from((own + received_ + 1) % houses, call, fault);
    if (status != Status::ok) return status;
  }
  exchanges_ = false;
  if (call.in_partials()) combine_all(call);
  return Status::ok;
}

Status HouseRounds::receive_from(std::size_t house, const Call& call, Fault& fault) noexcept {
  const auto& members = houses_.all()[house];
  const unsigned leader = members.front();
  const am::Message* front = mail_.front(leader);
  if (front == nullptr) return Status::in_progress;
  const std::size_t room = call.room, bytes = message_bytes(house, call);
  const auto header = front->header<MailHeader>();
  if (header.words() != call.work.words || header.call != static_cast<std::uint32_t>(call_) || front->bytes != bytes) {
    fault.why = Fault::Why::other_call;
    fault.member = leader;
    fault.theirs = header.words();
    return fault.status();
  }
  am::Message& message = mail_.take(leader);
  if (call.in_partials()) {
    if (bytes != 0) std::memcpy(board_.own_slot() + house * room, message.data, room);
  } else {
    for (std::size_t place = 0; bytes != 0 && place < members.size(); ++place)
      std::memcpy(board_.own_slot() + members[place] * room, message.data + place * room, room);
  }
  mail_.release(message);
  return Status::ok;
}

void HouseRounds::publish(const Work& work) noexcept {
  board_.publish(work.words);
  published_ = true;
  ++moved_;
  for (const Peer* peer : beside_) peer->link->wake();
}

Status HouseRounds::step(const Work& work, const Plan& plan, Fault& fault) noexcept {
  BoardRounds rounds(board_, members_, work, plan);
  const Call call = call_of(work, plan);
  for (;;) {
    if (!published_) {
      if (stage_ == Stage::show) {
        rounds.put(round_);
      } else if (houses_.leads()) {
        if (const Status status = exchange(call, fault); status != Status::ok) return status;
      }
      publish(work);
    }
    if (const Status status = board_.meet(work.words, fault); status != Status::ok) {
      if (status != Status::in_progress) fault.member = houses_.own()[fault.member];
      return status;
    }
    published_ = false;
    if (stage_ == Stage::show) {
      if (houses_.leads()) collect(call);
      board_.end_turn();
      stage_ = Stage::share;
      continue;
    }
    take(rounds, call);
    board_.end_turn();
    stage_ = Stage::show;
    sent_ = received_ = 0;
    // Others have their turn before the next round.
    return ++round_ == plan.rounds ? Status::ok : Status::in_progress;
  }
}

unsigned HouseRounds::awaited() const noexcept {
  const std::size_t houses = houses_.all().size(), own = houses_.own_place();
  if (exchanges_) {
    const std::size_t next = sent_ + 1 < houses ? sent_ : received_;
    return houses_.all()[(own + next + 1) % houses].front();
  }
  return houses_.own()[board_.awaited()];
}

bool HouseRounds::lets_sleep() const noexcept {
  if (exchanges_) return !blocked_ && mail_.front(awaited()) == nullptr;
  return published_ && !board_.is_here(board_.awaited());
}

}  // namespace brant::coll
