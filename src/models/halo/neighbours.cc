#include "models/halo/neighbours.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/engine.h"
#include "models/halo/line_table.h"
#include "ops/mapping/opening.h"

namespace brant::halo {
namespace {

template <typename Value>
void sort_once(std::vector<Value>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

/// The links with each rank, which stand together.
std::vector<std::span<const Link>> by_rank(const Layout& layout, const std::vector<Link>& links) {
  std::vector<std::span<const Link>> groups;
  for (auto first = links.begin(); first != links.end();) {
    const auto last = std::find_if(first, links.end(), [&](const Link& link) { return link.rank != first->rank; });
    if (first->rank != layout.rank()) groups.emplace_back(first, last);
    first = last;
  }
  return groups;
}

}  // namespace

std::size_t Neighbour::place_of(int block) const noexcept {
  return static_cast<std::size_t>(std::lower_bound(blocks.begin(), blocks.end(), block) - blocks.begin());
}

std::size_t Neighbour::landing_size(std::size_t bytes, std::size_t turns) const noexcept {
  return words_in_lines == 0 ? turns * bytes : kLineTurns * words_in_lines * sizeof(notify::Line);
}

std::vector<Neighbour> neighbours_of(const Layout& layout) {
  const auto sends = by_rank(layout, layout.sends());
  const auto receives = by_rank(layout, layout.receives());
  std::vector<Neighbour> all;
  // Who gets cells of this process has cells for it, and both lists are in the order of the ranks.
  for (std::size_t i = 0; i < sends.size(); ++i) {
    Neighbour& neighbour = all.emplace_back();
    neighbour.rank = sends[i][0].rank;
    neighbour.sends = sends[i];
    neighbour.receives = receives[i];
    for (const Link& link : sends[i]) neighbour.blocks.push_back(link.message.to);
    for (const Link& link : receives[i]) neighbour.fields.push_back(link.field);
    sort_once(neighbour.blocks);
    sort_once(neighbour.fields);
  }
  return all;
}

FieldOffer offer_field(Runtime& runtime, Buffer field, int block) {
  const Result<port::ExportRecord> record = Exports::record_of(runtime.worker().engine().device(), field.data);
  if (!record) {
    throw_error(
        record.status() == Status::not_found ? Status::not_supported : record.status(),
        fmt::format("halo: other processes cannot write into the field of block {}, {} bytes of {} memory: take "
                    "memory of Runtime::allocate, of the host 16 KB or more, or another HaloMode than direct",
                    block, field.bytes, memory_kind_name(field.kind)));
  }
  return {reinterpret_cast<std::uint64_t>(field.data), field.bytes, *record};
}

MappedMemory map_field(Runtime& runtime, int rank, int block, const FieldOffer& offer, bool for_device) {
  Engine& engine = runtime.worker().engine();
  Imports& imports = MappingTable::of(engine)->with(engine.peers().connect(Rank{rank})).imports;
  const auto what = fmt::format("halo: the field of block {} of rank {} cannot be mapped", block, rank);
  MappedMemory mapped = open_or_wait(engine, imports, offer.record, offer.bytes, offer.address, what);
  if (for_device && !mapped.lease.reach_by_device()) {
    throw Error(Status::not_supported, what + ": the device of this process does not reach it");
  }
  return mapped;
}

}  // namespace brant::halo
