#include "ops/coll/houses.h"

#include <algorithm>
#include <cstring>

#include "ops/coll/board_rounds.h"

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
  sent_ = received_ = 0;
}

/// What one member shows.
std::size_t HouseRounds::room_of(const Work& work) const noexcept {
  const std::size_t shares = shares_room(work.kind) ? members_.count : 1;
  return static_cast<std::size_t>(work.bytes) * shares;
}

bool HouseRounds::shows(std::size_t house, const Work& work) const noexcept {
  if (!comes_from_root(work.kind)) return true;
  const auto& members = houses_.all()[house];
  return std::binary_search(members.begin(), members.end(), work.root);
}

/// What those here show goes into the leader's next slot, where all will look, and into the message for other leaders.
void HouseRounds::collect(const Work& work) noexcept {
  const std::size_t room = room_of(work);
  if (room == 0) return;
  for (unsigned place = 0; place < houses_.own().size(); ++place) {
    std::memcpy(packed_.data() + place * room, board_.slot(place), room);
    std::memcpy(board_.own_next_slot() + houses_.own()[place] * room, board_.slot(place), room);
  }
}

Status HouseRounds::exchange(const Work& work, Fault& fault) noexcept {
  const std::size_t houses = houses_.all().size(), own = houses_.own_place();
  const std::size_t bytes = shows(own, work) ? room_of(work) * houses_.own().size() : 0;
  blocked_ = false;
  exchanges_ = true;
  for (; sent_ + 1 < houses; ++sent_) {
    const unsigned leader = houses_.all()[(own + sent_ + 1) % houses].front();
    const Status status = mail_.send(leader, MailKind::data, call_, work.words, {packed_.data(), bytes});
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
    const Status status = receive_from((own + received_ + 1) % houses, work, fault);
    if (status != Status::ok) return status;
  }
  exchanges_ = false;
  return Status::ok;
}

Status HouseRounds::receive_from(std::size_t house, const Work& work, Fault& fault) noexcept {
  const auto& members = houses_.all()[house];
  const unsigned leader = members.front();
  const am::Message* front = mail_.front(leader);
  if (front == nullptr) return Status::in_progress;
  const std::size_t room = room_of(work), bytes = shows(house, work) ? room * members.size() : 0;
  const auto header = front->header<MailHeader>();
  if (header.words() != work.words || header.call != static_cast<std::uint32_t>(call_) || front->bytes != bytes) {
    fault.why = Fault::Why::other_call;
    fault.member = leader;
    fault.theirs = header.words();
    return fault.status();
  }
  am::Message& message = mail_.take(leader);
  for (std::size_t place = 0; bytes != 0 && place < members.size(); ++place)
    std::memcpy(board_.own_slot() + members[place] * room, message.data + place * room, room);
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
  for (;;) {
    if (!published_) {
      if (stage_ == Stage::show) {
        rounds.put(0);
      } else if (houses_.leads()) {
        if (const Status status = exchange(work, fault); status != Status::ok) return status;
      }
      publish(work);
    }
    if (const Status status = board_.meet(work.words, fault); status != Status::ok) {
      if (status != Status::in_progress) fault.member = houses_.own()[fault.member];
      return status;
    }
    published_ = false;
    if (stage_ == Stage::show) {
      if (houses_.leads()) collect(work);
      board_.end_turn();
      stage_ = Stage::share;
      continue;
    }
    rounds.take_from(board_.slot(0), room_of(work));
    board_.end_turn();
    stage_ = Stage::show;
    return Status::ok;
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
