#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "models/mpi/shared/shared_step.h"

/// Blocks of which every pair of members has one of its own. Between two processes they go in the order of those who
/// give them, and of one giver in the order of those who get them; both ends know all sizes.
namespace brant::mpi {
namespace {

using coll::Work;
using Sizes = std::vector<std::uint64_t>;

/// `cursors`: where what concerns each process begins, if that of this one comes last. Returns the size of the rest.
std::uint64_t lay_out(const SharedStep& step, const Sizes& sizes, Sizes& cursors) {
  cursors.resize(sizes.size());
  std::uint64_t end = 0;
  for (std::size_t process = 0; process < sizes.size(); ++process) {
    cursors[process] = end;
    if (process != step.placement.own()) end += sizes[process];
  }
  cursors[step.placement.own()] = end;
  return end;
}

/// What goes to other processes and comes from them; what stays here lies behind it, and is nothing to the team.
Status exchange_with_others(const SharedStep& step, std::uint64_t give, std::uint64_t get) {
  SharedRoom& room = step.room;
  std::byte* const landing = room.get.take(get);
  room.give_bytes[step.placement.own()] = room.get_bytes[step.placement.own()] = 0;
  return step.ask_team(alltoallv(ConstBuffer(room.give.data(), static_cast<std::size_t>(give), MemoryKind::host),
                                 room.give_bytes, Buffer(landing, static_cast<std::size_t>(get), MemoryKind::host),
                                 room.get_bytes));
}

void add_up_sizes(const SharedStep& step) {
  SharedRoom& room = step.room;
  const unsigned processes = step.placement.processes(), members = step.placement.members();
  room.give_bytes.assign(processes, 0);
  room.get_bytes.assign(processes, 0);
  for (std::size_t i = 0; i < step.here(); ++i) {
    const Work& work = step.call.work(i);
    if (work.blocks.empty()) {
      for (unsigned process = 0; process < processes; ++process) {
        room.give_bytes[process] += work.bytes * step.members_of(process);
        room.get_bytes[process] += work.bytes * step.members_of(process);
      }
      continue;
    }
    for (unsigned rank = 0; rank < members; ++rank) {
      room.give_bytes[step.placement.process_of(rank)] += work.in_block_bytes(rank);
      room.get_bytes[step.placement.process_of(rank)] += work.block_bytes(rank);
    }
  }
}

/// Two members of this process say the same of the block between them.
Status compare_sizes_here(const SharedStep& step) {
  const auto ranks = step.placement.ranks_here();
  for (std::size_t giver = 0; giver < step.here(); ++giver) {
    for (std::size_t getter = 0; getter < step.here(); ++getter) {
      const std::uint64_t given = step.call.work(giver).in_block_bytes(ranks[getter]);
      const std::uint64_t got = step.call.work(getter).block_bytes(ranks[giver]);
      if (given == got) continue;
      step.why = fmt::format(
          "member {} gives a block of {} bytes to member {}, which gets one of {} from it: give "
          "both one size",
          ranks[giver], given, ranks[getter], got);
      return Status::invalid_argument;
    }
  }
  return Status::ok;
}

bool somebody_in_place(const SharedStep& step) noexcept {
  for (std::size_t i = 0; i < step.here(); ++i) {
    if (step.call.work(i).in == step.call.work(i).out) return true;
  }
  return false;
}

/// Where all live here, and nobody's data is overwritten before it was given.
void exchange_here(const SharedStep& step) {
  Sizes& places = step.room.own_cursors;
  places.assign(step.here(), 0);
  for (std::size_t giver = 0; giver < step.here(); ++giver) {
    const Work& from = step.call.work(giver);
    const std::byte* in = from.in;
    for (std::size_t getter = 0; getter < step.here(); ++getter) {
      const std::uint64_t bytes = from.in_block_bytes(getter);
      copy_block(step.call.work(getter).out + places[getter], in, bytes);
      places[getter] += bytes;
      in += bytes;
    }
  }
}

void put_together(const SharedStep& step) {
  Sizes& cursors = step.room.cursors;
  std::byte* const give = step.room.give.data();
  for (std::size_t giver = 0; giver < step.here(); ++giver) {
    const Work& from = step.call.work(giver);
    const std::byte* in = from.in;
    for (unsigned rank = 0; rank < step.placement.members(); ++rank) {
      std::uint64_t& place = cursors[step.placement.process_of(rank)];
      const std::uint64_t bytes = from.in_block_bytes(rank);
      copy_block(give + place, in, bytes);
      place += bytes;
      in += bytes;
    }
  }
}

void take_apart(const SharedStep& step) {
  SharedRoom& room = step.room;
  room.own_cursors.assign(step.here(), 0);
  for (unsigned rank = 0; rank < step.placement.members(); ++rank) {
    const std::byte* const from = step.placement.is_here(rank) ? room.give.data() : room.get.data();
    std::uint64_t& place = room.cursors[step.placement.process_of(rank)];
    for (std::size_t getter = 0; getter < step.here(); ++getter) {
      const Work& to = step.call.work(getter);
      const std::uint64_t bytes = to.block_bytes(rank);
      copy_block(to.out + room.own_cursors[getter], from + place, bytes);
      room.own_cursors[getter] += bytes;
      place += bytes;
    }
  }
}

}  // namespace

Status carry_on_alltoall(const SharedStep& step) {
  SharedRoom& room = step.room;
  const Placement& placement = step.placement;
  if (step.begins()) {
    if (step.call.common().uneven) {
      if (const Status status = compare_sizes_here(step); status != Status::ok) return status;
    }
    if (placement.alone() && !somebody_in_place(step)) {
      exchange_here(step);
      return Status::ok;
    }
    add_up_sizes(step);
    const std::uint64_t given = lay_out(step, room.give_bytes, room.cursors);
    static_cast<void>(room.give.take(given + room.give_bytes[placement.own()]));
    put_together(step);
    const std::uint64_t got = std::accumulate(room.get_bytes.begin(), room.get_bytes.end(), std::uint64_t{0}) -
                              room.get_bytes[placement.own()];
    if (!placement.alone()) return exchange_with_others(step, given, got);
  }
  add_up_sizes(step);
  const std::uint64_t given = lay_out(step, room.give_bytes, room.cursors);
  static_cast<void>(lay_out(step, room.get_bytes, room.cursors));
  room.cursors[placement.own()] = given;  // what stays here lies where it was put together
  take_apart(step);
  return Status::ok;
}

// Neighbours
// -------------------------------------------------------------------------------------------------------------------

namespace {

/// Those of one process lie together, and the blocks between two members in the order of their edges, at both ends.
bool goes_before(const EdgeBlock& a, const EdgeBlock& b) noexcept {
  return std::tie(a.process, a.source, a.destination, a.place) < std::tie(b.process, b.source, b.destination, b.place);
}

/// All blocks that members here give or get.
void list_edges(const SharedStep& step) {
  SharedRoom& room = step.room;
  room.gives.clear();
  room.gets.clear();
  for (std::size_t i = 0; i < step.here(); ++i) {
    const Work& work = step.call.work(i);
    const unsigned self = step.placement.ranks_here()[i];
    const bool one_for_each = work.kind == CollectiveKind::neighbour_alltoall;
    auto* in = const_cast<std::byte*>(work.in);
    for (std::size_t edge = 0; edge < work.neighbours.destinations.size(); ++edge) {
      const auto peer = static_cast<unsigned>(work.neighbours.destinations[edge]);
      const std::uint64_t bytes = one_for_each ? work.in_block_bytes(edge) : work.in_bytes;
      room.gives.push_back({step.placement.process_of(peer), self, peer, edge, in, bytes});
      if (one_for_each) in += bytes;
    }
    std::byte* out = work.out;
    for (std::size_t edge = 0; edge < work.neighbours.sources.size(); ++edge) {
      const auto peer = static_cast<unsigned>(work.neighbours.sources[edge]);
      room.gets.push_back({step.placement.process_of(peer), peer, self, edge, out, work.block_bytes(edge)});
      out += work.block_bytes(edge);
    }
  }
  std::sort(room.gives.begin(), room.gives.end(), goes_before);
  std::sort(room.gets.begin(), room.gets.end(), goes_before);
}

std::span<const EdgeBlock> within(const std::vector<EdgeBlock>& edges, unsigned process) noexcept {
  const auto [begin, end] = std::equal_range(edges.begin(), edges.end(), EdgeBlock{.process = process},
                                             [](const auto& a, const auto& b) { return a.process < b.process; });
  return {begin, end};
}

/// Along edges whose ends are both here.
Status exchange_edges_here(const SharedStep& step) {
  const auto gives = within(step.room.gives, step.placement.own());
  const auto gets = within(step.room.gets, step.placement.own());
  for (std::size_t i = 0; i < std::max(gives.size(), gets.size()); ++i) {
    const bool both = i < gives.size() && i < gets.size();
    if (both && gives[i].source == gets[i].source && gives[i].destination == gets[i].destination) {
      if (gives[i].bytes == gets[i].bytes) {
        copy_block(gets[i].data, gives[i].data, gets[i].bytes);
        continue;
      }
      step.why = fmt::format(
          "along an edge from member {} to member {} one gives {} bytes and the other gets {}: give "
          "both one size",
          gives[i].source, gives[i].destination, gives[i].bytes, gets[i].bytes);
      return Status::invalid_argument;
    }
    const bool only_given = i >= gets.size() || (both && goes_before(gives[i], gets[i]));
    const EdgeBlock& edge = only_given ? gives[i] : gets[i];
    step.why = fmt::format(
        "an edge from member {} to member {} stands in the list of {} of its ends alone: it stands "
        "in both, as often",
        edge.source, edge.destination, only_given ? "the first" : "the second");
    return Status::invalid_argument;
  }
  return Status::ok;
}

void sum_edges(const SharedStep& step, const std::vector<EdgeBlock>& edges, Sizes& sizes) {
  sizes.assign(step.placement.processes(), 0);
  for (const EdgeBlock& edge : edges) sizes[edge.process] += edge.bytes;
}

/// Calls `copy` for each block that has an end elsewhere, with its place among those.
template <typename Copy>
std::uint64_t for_edges_elsewhere(const SharedStep& step, const std::vector<EdgeBlock>& edges, Copy copy) {
  std::uint64_t place = 0;
  for (const EdgeBlock& edge : edges) {
    if (edge.process == step.placement.own()) continue;
    copy(place, edge);
    place += edge.bytes;
  }
  return place;
}

}  // namespace

Status carry_on_neighbours(const SharedStep& step) {
  SharedRoom& room = step.room;
  if (step.begins()) {
    list_edges(step);
    if (const Status status = exchange_edges_here(step); status != Status::ok || step.placement.alone()) return status;
    const auto count = [](std::uint64_t, const EdgeBlock&) noexcept {};
    const std::uint64_t given = for_edges_elsewhere(step, room.gives, count);
    const std::uint64_t got = for_edges_elsewhere(step, room.gets, count);
    std::byte* const give = room.give.take(given);
    for_edges_elsewhere(step, room.gives, [&](std::uint64_t place, const EdgeBlock& edge) noexcept {
      copy_block(give + place, edge.data, edge.bytes);
    });
    sum_edges(step, room.gives, room.give_bytes);
    sum_edges(step, room.gets, room.get_bytes);
    return exchange_with_others(step, given, got);
  }
  for_edges_elsewhere(step, room.gets, [&](std::uint64_t place, const EdgeBlock& edge) noexcept {
    copy_block(edge.data, room.get.data() + place, edge.bytes);
  });
  return Status::ok;
}

}  // namespace brant::mpi
