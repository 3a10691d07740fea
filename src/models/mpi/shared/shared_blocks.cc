#include <utility>

#include <fmt/format.h>

#include "models/mpi/shared/shared_step.h"

namespace brant::mpi {
namespace {

using coll::Work;
using Sizes = std::vector<std::uint64_t>;

/// Fills `offsets`: where the block of each member begins that one behind the other makes up a vector.
template <typename BytesOf>
std::uint64_t find_offsets(const SharedStep& step, BytesOf bytes_of) {
  Sizes& offsets = step.room.offsets;
  const unsigned members = step.placement.members();
  offsets.resize(members + std::size_t{1});
  std::uint64_t end = 0;
  for (unsigned rank = 0; rank < members; ++rank) {
    offsets[rank] = end;
    end += bytes_of(rank);
  }
  offsets[members] = end;
  return end;
}

[[nodiscard]] std::uint64_t block_of(const SharedStep& step, std::size_t rank) noexcept {
  return step.room.offsets[rank + 1] - step.room.offsets[rank];
}

/// Fills a list of sizes by process from the offsets of blocks by member.
void sum_by_process(const SharedStep& step, Sizes& sizes) {
  sizes.assign(step.placement.processes(), 0);
  for (unsigned rank = 0; rank < step.placement.members(); ++rank)
    sizes[step.placement.process_of(rank)] += block_of(step, rank);
}

/// Between a vector of blocks by rank and one of blocks process by process, of which those of `left_out` are not there.
template <typename Copy>
void for_blocks_by_process(const SharedStep& step, unsigned left_out, Copy copy) {
  std::uint64_t place = 0;
  for (unsigned process = 0; process < step.placement.processes(); ++process) {
    if (process == left_out) continue;
    for (const unsigned rank : step.placement.ranks_of(process)) {
      copy(place, step.room.offsets[rank], block_of(step, rank));
      place += block_of(step, rank);
    }
  }
}

constexpr unsigned kNone = ~0u;

/// What the members here give, one behind the other.
ConstBuffer given_here(const SharedStep& step) {
  const Work& first = step.call.common();
  if (step.here() == 1) return {first.in == nullptr ? step.room.give.take(0) : first.in, first.in_bytes};
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < step.here(); ++i) bytes += step.call.work(i).in_bytes;
  std::byte* const memory = step.room.give.take(bytes);
  std::uint64_t place = 0;
  for (std::size_t i = 0; i < step.here(); ++i) {
    const Work& work = step.call.work(i);
    copy_block(memory + place, work.in, work.in_bytes);
    place += work.in_bytes;
  }
  return {memory, static_cast<std::size_t>(bytes), MemoryKind::host};
}

Status refuse_block(const SharedStep& step, unsigned giver, std::uint64_t given, unsigned getter, std::uint64_t got) {
  step.why = fmt::format("member {} gives a block of {} bytes where member {} gets one of {}: give both one size",
                         giver, given, getter, got);
  return Status::invalid_argument;
}

}  // namespace

Status carry_on_broadcast(const SharedStep& step) {
  const Work& common = step.call.common();
  const unsigned process = step.placement.process_of(common.root);
  const bool from_here = process == step.placement.own();
  const Work& holder = step.call.work(from_here ? step.placement.index_of(common.root) : 0);
  if (step.begins() && !step.placement.alone()) {
    return step.ask_team(
        broadcast(Buffer(holder.out, static_cast<std::size_t>(common.bytes)), static_cast<int>(process)));
  }
  for (std::size_t i = 0; i < step.here(); ++i) copy_block(step.call.work(i).out, holder.out, common.bytes);
  return Status::ok;
}

// allgather
// -------------------------------------------------------------------------------------------------------------------

namespace {

void gather_here(const SharedStep& step, std::byte* target) {
  for (std::size_t i = 0; i < step.here(); ++i) {
    const unsigned rank = step.placement.ranks_here()[i];
    copy_block(target + step.room.offsets[rank], step.call.work(i).in, block_of(step, rank));
  }
}

}  // namespace

Status carry_on_allgather(const SharedStep& step) {
  const Work& common = step.call.common();
  SharedRoom& room = step.room;
  const Placement& placement = step.placement;
  const std::uint64_t all = find_offsets(step, [&](unsigned rank) { return common.block_bytes(rank); });
  const auto size = static_cast<std::size_t>(all);
  if (step.begins()) {
    for (std::size_t i = 0; i < step.here(); ++i) {
      const unsigned rank = placement.ranks_here()[i];
      const std::uint64_t given = step.call.work(i).block_bytes(rank);
      if (given != block_of(step, rank))
        return refuse_block(step, rank, given, placement.ranks_here()[0], block_of(step, rank));
    }
    if (placement.in_order()) gather_here(step, common.out);
    if (!placement.alone()) {
      sum_by_process(step, room.get_bytes);
      if (placement.in_order()) return step.ask_team(allgather({}, Buffer(common.out, size), room.get_bytes));
      std::uint64_t bytes = 0;
      for (const unsigned rank : placement.ranks_here()) bytes += block_of(step, rank);
      std::byte* const give = room.give.take(bytes);
      std::uint64_t place = 0;
      for (std::size_t i = 0; i < step.here(); ++i) {
        const std::uint64_t own = block_of(step, placement.ranks_here()[i]);
        copy_block(give + place, step.call.work(i).in, own);
        place += own;
      }
      return step.ask_team(allgather(ConstBuffer(give, static_cast<std::size_t>(bytes), MemoryKind::host),
                                     Buffer(room.get.take(all), size, MemoryKind::host), room.get_bytes));
    }
  }
  if (!placement.in_order()) {
    for_blocks_by_process(step, kNone, [&](std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
      copy_block(common.out + to, room.get.data() + from, bytes);
    });
  }
  for (std::size_t i = 1; i < step.here(); ++i) copy_block(step.call.work(i).out, common.out, all);
  return Status::ok;
}

// gather
// -------------------------------------------------------------------------------------------------------------------

Status carry_on_gather(const SharedStep& step) {
  const Placement& placement = step.placement;
  SharedRoom& room = step.room;
  const unsigned root = step.call.common().root;
  const unsigned process = placement.process_of(root);
  if (process != placement.own()) {
    if (!step.begins()) return Status::ok;
    return step.ask_team(gatherv(given_here(step), {}, {}, static_cast<int>(process)));
  }
  const Work& landing = step.call.work(placement.index_of(root));
  const std::uint64_t all = find_offsets(step, [&](unsigned rank) { return landing.block_bytes(rank); });
  if (step.begins()) {
    for (std::size_t i = 0; i < step.here(); ++i) {
      const unsigned rank = placement.ranks_here()[i];
      // At the root, `in` may be its block, and then its size is not told apart.
      const std::uint64_t given = rank == root ? block_of(step, rank) : step.call.work(i).in_bytes;
      if (given != block_of(step, rank)) return refuse_block(step, rank, given, root, block_of(step, rank));
    }
    gather_here(step, landing.out);
    if (!placement.alone()) {
      sum_by_process(step, room.get_bytes);
      if (placement.in_order()) {
        return step.ask_team(
            gatherv({}, Buffer(landing.out, static_cast<std::size_t>(all)), room.get_bytes, static_cast<int>(process)));
      }
      const std::uint64_t others = all - std::exchange(room.get_bytes[process], 0);
      return step.ask_team(gatherv({},
                                   Buffer(room.get.take(others), static_cast<std::size_t>(others), MemoryKind::host),
                                   room.get_bytes, static_cast<int>(process)));
    }
  }
  if (!placement.in_order()) {
    for_blocks_by_process(step, process, [&](std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
      copy_block(landing.out + to, room.get.data() + from, bytes);
    });
  }
  return Status::ok;
}

// scatter
// -------------------------------------------------------------------------------------------------------------------

namespace {

/// Where another process has the root.
Status scatter_from_elsewhere(const SharedStep& step, unsigned process) {
  const Work& first = step.call.common();
  if (step.begins()) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < step.here(); ++i) bytes += step.call.work(i).out_bytes;
    std::byte* get = step.here() == 1 ? first.out : step.room.get.take(bytes);
    return step.ask_team(scatterv({}, {}, Buffer(get, static_cast<std::size_t>(bytes)), static_cast<int>(process)));
  }
  if (step.here() == 1) return Status::ok;
  const std::byte* from = step.room.get.data();
  for (std::size_t i = 0; i < step.here(); ++i) {
    const Work& work = step.call.work(i);
    copy_block(work.out, from, work.out_bytes);
    from += work.out_bytes;
  }
  return Status::ok;
}

}  // namespace

Status carry_on_scatter(const SharedStep& step) {
  const Placement& placement = step.placement;
  SharedRoom& room = step.room;
  const unsigned root = step.call.common().root;
  const unsigned process = placement.process_of(root);
  if (process != placement.own()) return scatter_from_elsewhere(step, process);
  if (!step.begins()) return Status::ok;
  const Work& source = step.call.work(placement.index_of(root));
  const std::uint64_t all = find_offsets(step, [&](unsigned rank) { return source.in_block_bytes(rank); });
  for (std::size_t i = 0; i < step.here(); ++i) {
    const unsigned rank = placement.ranks_here()[i];
    const Work& work = step.call.work(i);
    if (rank == root && work.out_bytes == 0) continue;  // its own block may stay where it is
    if (work.out_bytes != block_of(step, rank))
      return refuse_block(step, root, block_of(step, rank), rank, work.out_bytes);
    copy_block(work.out, source.in + room.offsets[rank], work.out_bytes);
  }
  if (placement.alone()) return Status::ok;
  sum_by_process(step, room.give_bytes);
  const auto to_root = static_cast<int>(process);
  if (placement.in_order()) {
    return step.ask_team(scatterv(ConstBuffer(source.in, static_cast<std::size_t>(all)), room.give_bytes, {}, to_root));
  }
  const std::uint64_t others = all - std::exchange(room.give_bytes[process], 0);
  std::byte* const give = room.give.take(others);
  for_blocks_by_process(step, process, [&](std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    copy_block(give + to, source.in + from, bytes);
  });
  return step.ask_team(
      scatterv(ConstBuffer(give, static_cast<std::size_t>(others), MemoryKind::host), room.give_bytes, {}, to_root));
}

}  // namespace brant::mpi
