// How members meet, and how those that are left find each other.
#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "ops/coll/team_state.h"

namespace brant {
namespace coll {
namespace {

constexpr std::uint32_t kVersion = 3;

/// This process and `peer`, which is null for this one itself, can have a board in common.
bool shares_memory(const TeamOptions& options, const Members& members, const Peer* peer) noexcept {
  if (options.way == TeamWay::messages || members.count > kBoardMembersMax) return false;
  return peer != nullptr && peer->same_host && peer->link != nullptr;
}

std::string wish(TeamWay way, StreamWay stream_way, SumOrder order) {
  return fmt::format("the way {}, {} on streams, and sums in {} order", team_way_name(way), stream_way_name(stream_way),
                     order == SumOrder::free ? "any" : "the ranks'");
}

}  // namespace

/// What each member says of itself.
struct FormRecord {
  std::uint32_t version = kVersion;
  std::uint32_t led = 0;     ///< Of the lowest rank: how many teams it was that of.
  std::uint32_t leader = 0;  ///< The lowest member on its host.
  bool offers = false;       ///< A leader: memory for the board of its host is below.
  TeamWay way = TeamWay::automatic;
  StreamWay stream_way = StreamWay::automatic;
  SumOrder sum_order = SumOrder::of_ranks;
  MeasuredBands bands;  ///< Of its machine.
  MemoryFileRecord memory;
};

namespace {

/// Throws where members differ in what they have to agree on.
void compare_options(const std::vector<FormRecord>& all, std::span<const Rank> ranks, const TeamOptions& own) {
  for (unsigned m = 0; m < all.size(); ++m) {
    const FormRecord& theirs = all[m];
    if (theirs.way == own.way && theirs.stream_way == own.stream_way && theirs.sum_order == own.sum_order) continue;
    throw Error(
        Status::invalid_argument,
        fmt::format("no team was made: member {} (rank {} of the job) wants {}; this one wants {}. Options are the "
                    "same at all members",
                    m, ranks[m].value, wish(theirs.way, theirs.stream_way, theirs.sum_order),
                    wish(own.way, own.stream_way, own.sum_order)));
  }
}

/// All have come to know the same of what they share, and so come to the same here.
void require_way(const Ways& ways, unsigned members, TeamWay way) {
  if (members == 1 || way == TeamWay::automatic || way == TeamWay::messages) return;
  const bool of_hosts = way == TeamWay::hosts;
  if (of_hosts ? ways.has_boards_of_hosts() : ways.has_board()) return;
  throw Error(Status::not_supported,
              fmt::format("no team was made: it is to go by {}, but {}. Use TeamWay::automatic", team_way_name(way),
                          of_hosts ? "its members are not on several hosts of which some share one"
                                   : "its members do not all share memory (other hosts, no memory that all map, or "
                                     "more than 64)"));
}

}  // namespace
}  // namespace coll

using coll::FormRecord;

void TeamState::connect() {
  for (unsigned m = 0; m < members_.count; ++m) {
    if (m == members_.self) continue;
    Watch& watch = watches_[m];
    watch.team = this;
    watch.member = m;
    watch.lost = &TeamState::on_lost;
    Peer& peer = engine_.peers().connect(ranks_[m]);
    watch.peer = &peer;
    peer.add_outstanding(watch);
  }
}

/// Says who leads the members on this host; the leader makes memory for them.
void TeamState::make_memory(FormRecord& own) {
  unsigned beside = 0;
  own.leader = members_.self;
  for (unsigned m = members_.count; m-- > 0;) {
    if (!coll::shares_memory(options_, members_, watches_[m].peer)) continue;
    ++beside;
    own.leader = std::min(own.leader, m);
  }
  if (beside == 0 || own.leader != members_.self) return;
  const Result<MemoryFileRecord> made = memory_.make(beside + 1);
  own.offers = made.ok();
  if (made) own.memory = *made;
  if (!made) log::info("team {}: no memory to share ({}): it goes by messages", name_, status_text(made.status()));
}

/// What all have said is enough to know who shares memory with whom.
void TeamState::map_memory(const std::vector<FormRecord>& all) {
  std::vector<unsigned> leaders;
  for (const FormRecord& record : all) {
    leaders.push_back(record.leader);
    if (record.leader >= members_.count || all[record.leader].leader != record.leader) return memory_.drop();
  }
  coll::Houses houses(leaders, members_.self);
  const FormRecord& leader = all[leaders[members_.self]];
  const auto count = static_cast<unsigned>(houses.own().size());
  const bool see_each_other = std::all_of(houses.own().begin(), houses.own().end(), [this](unsigned m) {
    return m == members_.self || coll::shares_memory(options_, members_, watches_[m].peer);
  });
  Status status = see_each_other ? Status::ok : Status::not_supported;
  if (status == Status::ok && count == 1 && houses.are_worth_it()) {
    status = memory_.make(1).status();  // a board where nobody else looks
  } else if (status == Status::ok && count > 1 && !memory_.is_there()) {
    status = leader.offers ? memory_.map(leader.memory, count) : Status::not_supported;
  }
  if (status != Status::ok) {
    log::info("team {}: the memory of member {} cannot be mapped ({}): it goes by messages", name_,
              leaders[members_.self], status_text(status));
    memory_.drop();
  }
  const std::uint8_t mapped = memory_.is_there() ? 1 : 0;
  std::vector<std::uint8_t> mapped_by(members_.count);
  const OpResult told = run(allgather(ConstBuffer(&mapped, 1, MemoryKind::host),
                                      Buffer(mapped_by.data(), mapped_by.size(), MemoryKind::host)),
                            TeamWay::automatic);
  if (!told.ok()) throw Error(told.status, fmt::format("no team was made: {}", describe_fault()));
  if (std::any_of(mapped_by.begin(), mapped_by.end(), [](std::uint8_t each) { return each == 0; }))
    return memory_.drop();
  std::vector<Peer*> peers;
  for (const Watch& watch : watches_) peers.push_back(watch.peer);
  if (houses.all().size() == 1) {
    ways_.share_board(engine_, memory_.data(), peers);
  } else {
    ways_.share_boards(std::move(houses), memory_.data(), peers);
  }
}

void TeamState::form() {
  const auto require = [this](const OpResult& outcome) {
    if (outcome.ok()) return;
    const std::string why = describe_fault();
    throw Error(outcome.status, fmt::format("no team was made: {}", why.empty() ? status_text(outcome.status) : why));
  };
  const auto lowest = static_cast<unsigned>(std::min_element(ranks_.begin(), ranks_.end()) - ranks_.begin());
  FormRecord own;
  own.way = options_.way;
  own.stream_way = options_.stream_way;
  own.sum_order = options_.sum_order;
  own.bands = coll::measured_bands(table_.bands(), members_.count);
  if (lowest == members_.self) own.led = table_.next_led();
  name_ = fmt::format("of {} led by rank {}", members_.count, ranks_[lowest].value);
  connect();
  entered_ = table_.enter(key_, *this);
  if (!entered_) throw Error(Status::internal, "two teams of one process have one key");
  patience_ = std::min(options_.patience, options_.forming_patience);
  make_memory(own);

  std::vector<FormRecord> all(members_.count);
  static_assert(std::is_trivially_copyable_v<FormRecord>);
  const auto bytes_of = [](auto& items) {
    return Buffer(items.data(), items.size() * sizeof(items[0]), MemoryKind::host);
  };
  require(run(allgather(ConstBuffer(&own, sizeof(own), MemoryKind::host), bytes_of(all)), TeamWay::automatic));
  for (const FormRecord& record : all) {
    if (record.version != coll::kVersion)
      throw Error(Status::version_mismatch, "members run different versions of brant");
  }
  coll::compare_options(all, ranks_, options_);
  if (members_.count > 1) map_memory(all);
  coll::require_way(ways_, members_.count, options_.way);
  for (const FormRecord& record : all) bands_ = coll::larger(bands_, record.bands);
  ways_.set_bands(coll::bands_of(bands_));
  ways_.set_order(options_.sum_order);

  name_ = fmt::format("{}.{}", ranks_[lowest].value, all[lowest].led);
  patience_ = options_.patience;
  journal_.introduce(name_, key_, members_, ranks_[members_.self]);
}

std::vector<Rank> TeamState::agree_on_survivors() {
  const unsigned self = members_.self;
  const auto say = [&] {
    const std::vector<std::byte> gone = shrinking_.gone();
    for (unsigned m = 0; m < members_.count; ++m) {
      if (m != self && !shrinking_.is_gone(m)) static_cast<void>(mail_.send(m, coll::MailKind::shrink, 0, {}, gone));
    }
    return gone;
  };
  engine_.progress().look_around();
  const auto patience = std::min(options_.patience, options_.forming_patience);
  std::vector<std::byte> said = say();
  TimePoint until = deadline_after(patience);
  struct Waited {
    coll::Shrinking& shrinking;
    const std::vector<std::byte>& said;
    unsigned self;
  };
  while (!shrinking_.is_agreed(self) || said != shrinking_.gone()) {
    Waited waited{shrinking_, said, self};
    const auto news = [](void* context) noexcept {
      auto& look = *static_cast<Waited*>(context);
      return look.shrinking.gone() != look.said || look.shrinking.is_agreed(look.self);
    };
    static_cast<void>(engine_.waiting().wait(news, &waited, std::chrono::milliseconds(20)));
    if (Clock::now() >= until) {
      for (unsigned m = 0; m < members_.count; ++m) {
        if (m != self && !shrinking_.is_gone(m) && !shrinking_.agrees(m)) static_cast<void>(shrinking_.note_gone(m));
      }
      until = deadline_after(patience);
    }
    if (shrinking_.is_gone(self))
      throw Error(Status::timed_out,
                  fmt::format("team {}: the others have taken this member for lost, since it was silent", name_));
    if (said != shrinking_.gone()) said = say();
  }
  std::vector<Rank> living;
  for (unsigned m = 0; m < members_.count; ++m) {
    if (!shrinking_.is_gone(m)) living.push_back(ranks_[m]);
  }
  return living;
}

}  // namespace brant
