// Sections and callbacks. Reductions are in teams_reduce.cc, the calls of a section in multicast.cc.
#include "models/chare/teams.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "models/chare/busy_mark.h"
#include "models/chare/core.h"

namespace brant::detail {
namespace {

constexpr std::size_t kFunctionsMax = 1'000'000;

/// A call of an entry of `Teams` whose last argument is a blob that the caller fills: `Outgoing::args` is its begin.
template <auto Method, typename... Header>
Outgoing open_blob(Core& core, std::int32_t rank, const CallOptions& options, std::size_t bytes,
                   const Header&... header) {
  const auto count = static_cast<std::uint64_t>(bytes);
  SizeArchive size;
  size(header..., count);
  size.align(16);
  const auto& entry = EntryOf<Teams, Method>::get();
  Outgoing outgoing = open_call(core, Teams::target_on(core, rank), entry, options, 0, size.size() + bytes);
  WriteArchive write(outgoing.args);
  write(header..., count);
  write.align(16);
  outgoing.args += size.size();
  return outgoing;
}

}  // namespace

Teams::~Teams() {
  const auto over = std::make_exception_ptr(Error(Status::shutting_down, "the program ended before the reduction did"));
  for (auto& [id, team] : teams_) {
    for (auto& [number, list] : team.waiting) {
      for (Waiting& waiting : list) waiting.deliver(waiting.storage, nullptr, over);
    }
  }
}

Core& Teams::core() const noexcept { return chares().core(); }

Target Teams::target_on(Core& core, std::int32_t rank) {
  static_cast<void>(core);
  return {kSinglesBit | number_of(ClassOf<Teams>::get()), SingleNumber{rank, rank, 0}.key()};  // the only one there
}

Teams::Team& Teams::team_of(const TeamId& id) {
  Team& team = teams_[id];
  if (id.section == 0) team.known = true;
  return team;
}

/// Which of the team's ranks is above and which are below this one, once that can be known.
void Teams::place(Team& team, const TeamId& id) {
  if (team.placed || !team.known) return;
  team.placed = true;
  const bool everywhere = id.section == 0;
  const auto size = everywhere ? static_cast<std::size_t>(core().ranks()) : team.ranks.size();
  const auto rank_at = [&](std::size_t at) { return everywhere ? static_cast<std::int32_t>(at) : team.ranks[at]; };
  const auto self =
      everywhere ? static_cast<std::size_t>(core().rank())
                 : static_cast<std::size_t>(std::lower_bound(team.ranks.begin(), team.ranks.end(), core().rank()) -
                                            team.ranks.begin());
  if (self >= size || rank_at(self) != core().rank()) return;  // no member here
  if (self != 0) team.parent = rank_at((self - 1) / kArity);
  for (std::size_t child = self * kArity + 1; child <= self * kArity + kArity && child < size; ++child) {
    team.children.push_back({rank_at(child), true});
  }
}

std::uint64_t Teams::new_section() noexcept {
  return static_cast<std::uint64_t>(core().rank()) << 32 | ++sections_made_;
}

void Teams::define(TeamId id, std::int32_t root, const std::vector<ElementKey>& members) {
  const CountMark work(at_work_);
  const std::int32_t ranks = core().ranks();
  if (root < 0 || root >= ranks) throw Error(Status::invalid_argument, "a section is told by a rank that there is not");
  const std::int32_t place = (core().rank() - root + ranks) % ranks;
  for (unsigned i = 1; i <= kArity; ++i) {
    const std::int64_t child = std::int64_t{place} * kArity + i;
    if (child >= ranks) break;
    tell<&Teams::define>(core(), static_cast<std::int32_t>((child + root) % ranks), id, root, members);
  }
  if (core().has_gone(id.collection)) return;
  const Collection* collection = core().find_collection(id.collection);
  if (collection == nullptr) {
    early_definitions_.push_back({id, members});
  } else {
    install(team_of(id), id, members, *collection);
  }
}

void Teams::install(Team& team, const TeamId& id, const std::vector<ElementKey>& members,
                    const Collection& collection) {
  const auto early = std::move(team.counts);
  team.counts.clear();
  for (const ElementKey& key : members) {
    const std::int32_t rank = collection.home_of(key);  // all ranks must see the same tree, whoever has moved
    team.ranks.push_back(rank);
    if (rank != core().rank()) continue;
    const auto contributed = early.find(key);
    team.counts.emplace(key, contributed != early.end() ? contributed->second : 0);
  }
  for (const auto& [key, count] : early) {
    if (team.counts.contains(key)) continue;
    return core().fail_job(fmt::format("{} on rank {} contributed to a reduction of a section that it is no member of",
                                       collection.name_of(key), core().rank()));
  }
  std::sort(team.ranks.begin(), team.ranks.end());
  team.ranks.erase(std::unique(team.ranks.begin(), team.ranks.end()), team.ranks.end());
  team.known = true;
  core().section_known(id.section);
  // Rounds that elements began before: now their children can be poked.
  place(team, id);
  for (std::uint32_t round = team.first; round != team.next(); ++round) {
    for (const Child& child : team.children) {
      tell<&Teams::poke>(core(), child.rank, id, round);
    }
  }
  close_rounds(team, id);
}

const Teams::Members* Teams::members(const TeamId& section) const noexcept {
  const auto found = teams_.find(section);
  return found != teams_.end() && found->second.known ? &found->second.counts : nullptr;
}

Teams::Branches Teams::branches(const TeamId& section, std::int32_t root) const {
  // Places in the tree: the root, then the ranks with members but without the root.
  const std::vector<std::int32_t>& ranks = teams_.at(section).ranks;
  const auto find = [&](std::int32_t rank) {
    return static_cast<std::size_t>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
  };
  const std::size_t gap = find(root);
  const bool among = gap < ranks.size() && ranks[gap] == root;
  const std::size_t places = ranks.size() + (among ? 0 : 1);
  const std::size_t self = find(core().rank());
  const std::size_t own = core().rank() == root ? 0 : self + (among && self > gap ? 0 : 1);
  Branches branches;
  for (std::size_t child = own * kArity + 1; child <= own * kArity + kArity && child < places; ++child) {
    branches.rank[branches.count++] = ranks[among && child > gap ? child : child - 1];
  }
  return branches;
}

CallbackTarget Teams::keep(std::function<void(ReadArchive&)> function) {
  std::size_t place = functions_.size();
  if (!free_functions_.empty()) {
    place = free_functions_.back();
    free_functions_.pop_back();
  } else if (place < kFunctionsMax) {
    functions_.emplace_back();
    free_functions_.reserve(functions_.capacity());  // nothing is allocated when one is given back
  } else {
    throw Error(Status::limit_reached,
                fmt::format("rank {} has {} function callbacks: make one and call it often, or destroy those that "
                            "nobody calls any more",
                            core().rank(), functions_.size()));
  }
  functions_[place].run = std::move(function);
  CallbackTarget target;
  target.kind = CallbackKind::function;
  target.rank = core().rank();
  target.number = static_cast<std::uint32_t>(place);
  target.section = functions_[place].turn;
  return target;
}

Teams::Function& Teams::function_at(std::uint32_t number, std::uint64_t turn) {
  if (number < functions_.size() && functions_[number].turn == turn) return functions_[number];
  throw Error(Status::not_found,
              "a callback was called, or destroyed, after it was destroyed: let its last callers finish before that");
}

void Teams::run_function(std::uint32_t number, std::uint64_t turn, Blob values) {
  const auto function = function_at(number, turn).run;  // it may make another callback
  ReadArchive archive(&chares(), values.bytes.data(), values.bytes.size());
  function(archive);
}

void Teams::destroy_function(std::uint32_t number, std::uint64_t turn) {
  Function& function = function_at(number, turn);
  ++function.turn;
  const auto dying = std::exchange(function.run, {});  // what it holds may look for others when it goes
  free_functions_.push_back(number);
}

void Teams::await_quiescence(const Callback<>& to) { core().quiet().await(to); }

// --- the seam

std::int32_t rank_of(Core& core) noexcept { return core.rank(); }

std::uint64_t define_section(Core& core, std::uint32_t collection, const std::vector<ElementKey>& members) {
  if (members.empty()) {
    throw Error(Status::invalid_argument,
                fmt::format("rank {}: a section of {} without members: name at least one element", core.rank(),
                            core.name_of_array(collection)));
  }
  const std::uint64_t section = core.teams().new_section();
  tell<&Teams::define>(core, core.rank(), TeamId{section, collection, 0}, core.rank(), members);
  return section;
}

Outgoing open_callback(Core& core, const CallbackTarget& target, std::size_t bytes) {
  switch (target.kind) {
    case CallbackKind::exit: core.exit(static_cast<std::int32_t>(target.number)); return {};
    case CallbackKind::element:
    case CallbackKind::array: {
      const auto* entry = core.registry().find<EntryInfo>(target.entry, RegisteredKind::entry);
      if (entry == nullptr && core.registry().is_awaited(target.entry)) {
        throw Error(Status::invalid_argument,
                    fmt::format("rank {}: a callback names an entry method that nobody has enrolled here: open the "
                                "library that has it on this rank too, and co_await Chares::enroll_late()",
                                core.rank()));
      }
      if (entry == nullptr) throw Error(Status::internal, "a callback names an entry that is none");
      if (target.kind == CallbackKind::array) return open_broadcast(core, target.collection, *entry, {}, bytes);
      return open_call(core, {target.collection, target.key}, *entry, {}, 0, bytes);
    }
    case CallbackKind::section:
      return open_multicast(core, {target.section, target.collection, 0}, target.entry, {}, bytes);
    case CallbackKind::future: {
      core.make_room();
      Invocation answered{&core, nullptr, nullptr, nullptr, target.rank, target.number};
      return open_reply(answered, bytes);
    }
    case CallbackKind::function:
      return open_blob<&Teams::run_function>(core, target.rank, {}, bytes, target.number, target.section);
    default: return {};
  }
}

std::uint32_t expect_callback(Core& core, const Waiting& waiting) {
  static constinit EntryInfo callback_entry{{RegisteredKind::entry, 0, kCallbackOwner, "callback", ""}, nullptr};
  return expect_reply(core, waiting, Target{}, callback_entry);
}

CallbackTarget keep_function(Core& core, std::function<void(ReadArchive&)> function) {
  return core.teams().keep(std::move(function));
}

void destroy_callback(Core& core, const CallbackTarget& target) {
  if (target.kind == CallbackKind::function) {
    tell<&Teams::destroy_function>(core, target.rank, target.number, target.section);
  } else if (target.kind == CallbackKind::future) {
    core.fail_future(target, Error(Status::canceled, "the callback was destroyed before anybody called it"));
  }
}

void contribute(Core& core, const Contribution& contribution) { core.teams().contribute_here(contribution); }

}  // namespace brant::detail
