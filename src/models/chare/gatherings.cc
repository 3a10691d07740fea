// Sections and callbacks. Reductions are in gatherings_reduce.cc, the calls of a section in multicast.cc.
#include "models/chare/gatherings.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "models/chare/busy_mark.h"
#include "models/chare/latecomers.h"
#include "models/chare/quiet.h"

namespace brant::detail {

Gatherings::~Gatherings() {
  const auto over = std::make_exception_ptr(Error(Status::shutting_down, "the program ended before the reduction did"));
  for (auto& [id, gathering] : gatherings_) {
    for (auto& [number, list] : gathering.waiting) {
      for (Waiting& waiting : list) waiting.deliver(waiting.storage, nullptr, over);
    }
  }
}

Target Gatherings::target_on(std::int32_t rank) {
  return {kSinglesBit | number_of(ClassOf<Gatherings>::get()),
          SingleNumber{rank, rank, 0}.key()};  // the only one there
}

Gatherings::Gathering& Gatherings::gathering_of(const GatheringId& id) {
  Gathering& gathering = gatherings_[id];
  if (id.section == 0) gathering.known = true;
  return gathering;
}

/// Which of the gathering's ranks is above and which are below this one, once that can be known.
void Gatherings::place(Gathering& gathering, const GatheringId& id) {
  if (gathering.placed || !gathering.known) return;
  gathering.placed = true;
  const bool everywhere = id.section == 0;
  const auto size = everywhere ? static_cast<std::size_t>(with_->context.ranks) : gathering.ranks.size();
  const auto rank_at = [&](std::size_t at) { return everywhere ? static_cast<std::int32_t>(at) : gathering.ranks[at]; };
  const auto self = everywhere ? static_cast<std::size_t>(with_->context.rank)
                               : static_cast<std::size_t>(std::lower_bound(gathering.ranks.begin(),
                                                                           gathering.ranks.end(), with_->context.rank) -
                                                          gathering.ranks.begin());
  if (self >= size || rank_at(self) != with_->context.rank) return;  // no member here
  if (self != 0) gathering.parent = rank_at((self - 1) / kArity);
  for (std::size_t child = self * kArity + 1; child <= self * kArity + kArity && child < size; ++child) {
    gathering.children.push_back({rank_at(child), true});
  }
}

std::uint64_t Gatherings::new_section() noexcept {
  return static_cast<std::uint64_t>(with_->context.rank) << 32 | ++sections_made_;
}

void Gatherings::define(GatheringId id, std::int32_t root, const std::vector<ElementKey>& members) {
  const CountMark work(at_work_);
  const std::int32_t ranks = with_->context.ranks;
  if (root < 0 || root >= ranks) throw Error(Status::invalid_argument, "a section is told by a rank that there is not");
  const std::int32_t place = (with_->context.rank - root + ranks) % ranks;
  for (unsigned i = 1; i <= kArity; ++i) {
    const std::int64_t child = std::int64_t{place} * kArity + i;
    if (child >= ranks) break;
    tell<&Gatherings::define>(core(), static_cast<std::int32_t>((child + root) % ranks), id, root, members);
  }
  if (with_->collections.has_gone(id.collection)) return;
  const Collection* collection = with_->collections.find(id.collection);
  if (collection == nullptr) {
    early_definitions_.push_back({id, members});
  } else {
    install(gathering_of(id), id, members, *collection);
  }
}

void Gatherings::install(Gathering& gathering, const GatheringId& id, const std::vector<ElementKey>& members,
                         const Collection& collection) {
  const auto early = std::move(gathering.counts);
  gathering.counts.clear();
  for (const ElementKey& key : members) {
    const std::int32_t rank = collection.home_of(key);  // all ranks must see the same tree, whoever has moved
    gathering.ranks.push_back(rank);
    if (rank != with_->context.rank) continue;
    const auto contributed = early.find(key);
    gathering.counts.emplace(key, contributed != early.end() ? contributed->second : 0);
  }
  for (const auto& [key, count] : early) {
    if (gathering.counts.contains(key)) continue;
    return with_->ending.fail_job(
        fmt::format("{} on rank {} contributed to a reduction of a section that it is no member of",
                    collection.name_of(key), with_->context.rank));
  }
  std::sort(gathering.ranks.begin(), gathering.ranks.end());
  gathering.ranks.erase(std::unique(gathering.ranks.begin(), gathering.ranks.end()), gathering.ranks.end());
  gathering.known = true;
  with_->latecomers.section_known(id.section);
  // Rounds that elements began before: now their children can be poked.
  place(gathering, id);
  for (std::uint32_t round = gathering.first; round != gathering.next(); ++round) {
    for (const Child& child : gathering.children) {
      tell<&Gatherings::poke>(core(), child.rank, id, round);
    }
  }
  close_rounds(gathering, id);
}

const Gatherings::Members* Gatherings::members(const GatheringId& section) const noexcept {
  const auto found = gatherings_.find(section);
  return found != gatherings_.end() && found->second.known ? &found->second.counts : nullptr;
}

Gatherings::Branches Gatherings::branches(const GatheringId& section, std::int32_t root) const {
  // Places in the tree: the root, then the ranks with members but without the root.
  const std::vector<std::int32_t>& ranks = gatherings_.at(section).ranks;
  const auto find = [&](std::int32_t rank) {
    return static_cast<std::size_t>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
  };
  const std::size_t gap = find(root);
  const bool among = gap < ranks.size() && ranks[gap] == root;
  const std::size_t places = ranks.size() + (among ? 0 : 1);
  const std::size_t self = find(with_->context.rank);
  const std::size_t own = with_->context.rank == root ? 0 : self + (among && self > gap ? 0 : 1);
  Branches branches;
  for (std::size_t child = own * kArity + 1; child <= own * kArity + kArity && child < places; ++child) {
    branches.rank[branches.count++] = ranks[among && child > gap ? child : child - 1];
  }
  return branches;
}

void Gatherings::run_function(std::uint32_t number, std::uint64_t turn, Blob values) {
  const auto function = functions_.at(number, turn);  // it may make another callback
  ReadArchive archive(&chares(), values.bytes.data(), values.bytes.size());
  function(archive);
}

void Gatherings::destroy_function(std::uint32_t number, std::uint64_t turn) { functions_.destroy(number, turn); }

void Gatherings::await_quiescence(const Callback<>& to) { with_->quiet.await(to); }

}  // namespace brant::detail
