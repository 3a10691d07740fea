#include <vector>

#include <fmt/format.h>

#include "models/mpi/types/constructors.h"
#include "models/mpi/types/making.h"

namespace brant::mpi {
namespace {

bool is_order(int order) {
  return order == static_cast<int>(ArrayOrder::c) || order == static_cast<int>(ArrayOrder::fortran);
}
Made refused_order(int order) {
  return refused(ErrorClass::arg, fmt::format("the order is {}: give MPI_ORDER_C or MPI_ORDER_FORTRAN", order));
}
Made refused_dimension(std::size_t dimension, std::string_view what) {
  return refused(ErrorClass::arg, fmt::format("dimension {}: {}", dimension, what));
}

/// The dimensions of an array from the one whose elements lie together on.
std::vector<std::size_t> inside_out(std::size_t dimensions, int order) {
  std::vector<std::size_t> places(dimensions);
  for (std::size_t i = 0; i < dimensions; ++i) {
    places[i] = order == static_cast<int>(ArrayOrder::fortran) ? i : dimensions - 1 - i;
  }
  return places;
}

/// What arrays of a part are made of: bounds of the whole array, and the distance between elements of each dimension.
/// False: it does not fit.
bool measure_array(std::span<const Count> sizes, const std::vector<std::size_t>& order, const Datatype& old,
                   Bounds& bounds, std::vector<Count>& strides) {
  strides.resize(sizes.size());
  Count bytes = old.extent();
  for (const std::size_t dimension : order) {
    strides[dimension] = bytes;
    if (__builtin_mul_overflow(bytes, sizes[dimension], &bytes)) return false;
  }
  bounds = {true, true, 0, bytes};
  return true;
}

std::optional<Made> refusal_of_array(std::size_t dimensions, int order, const Datatype* old) {
  if (dimensions == 0) return refused(ErrorClass::dims, "the array has no dimensions: give 1 or more");
  if (dimensions > kDepthMost) return refused(ErrorClass::dims, fmt::format("the array has {} dimensions", dimensions));
  if (auto refusal = refusal_of(old, static_cast<std::uint32_t>(2 * dimensions))) return refusal;
  if (!is_order(order)) return refused_order(order);
  return std::nullopt;
}

std::optional<Made> refusal_of_part(Count size, Count part, Count start, std::size_t dimension) {
  if (size < 1) return refused_dimension(dimension, fmt::format("its size is {}: give 1 or more", size));
  if (part < 1 || part > size) {
    return refused_dimension(dimension, fmt::format("the part's size is {}: give 1 to {}", part, size));
  }
  if (start < 0 || start > size - part) {
    return refused_dimension(dimension, fmt::format("the part starts at {}: give 0 to {}", start, size - part));
  }
  return std::nullopt;
}

/// Which elements of one dimension a process has: blocks of `block`, one every `period`, from `first` on; the last one
/// may be shorter.
struct Share {
  Count first = 0;
  Count block = 0;
  Count period = 0;
  Count whole = 0;  ///< Blocks.
  Count rest = 0;   ///< Elements of the last one.
};

Share share_of(Count size, Count processes, Count place, Count kind, Count argument) {
  if (kind == kDistributeNone || processes == 1) return {0, size, 0, 1, 0};
  Count block = argument;
  if (argument == kDistributeDefault) block = kind == kDistributeCyclic ? 1 : (size - 1) / processes + 1;
  Share share;
  share.block = block;
  if (place != 0 && block > (size - 1) / place) return share;  // it starts behind the end
  share.first = place * block;
  Count left = size - share.first;
  if (block > left / processes) {  // the next round would start behind the end
    share.whole = left >= block ? 1 : 0;
    share.rest = left >= block ? 0 : left;
    return share;
  }
  share.period = processes * block;
  share.whole = left / share.period;
  left -= share.whole * share.period;
  if (left >= block) {
    ++share.whole;
  } else {
    share.rest = left;
  }
  return share;
}

/// The part of a process of one more dimension.
MaybePlaced lay_share(const Placed& inner, const Share& share, Count stride, LayoutList::Join join) {
  LayoutList list(join);
  const auto whole = static_cast<std::uint64_t>(share.whole);
  // A block may be larger than the array if there is no whole one.
  const MaybePlaced block = make_loop(inner, whole == 0 ? 0 : static_cast<std::uint64_t>(share.block), stride);
  if (!block) return std::nullopt;
  const MaybePlaced blocks = make_loop(*block, whole, share.period * stride);
  const MaybePlaced rest = make_loop(inner, static_cast<std::uint64_t>(share.rest), stride);
  if (!blocks || !rest) return std::nullopt;
  const MaybePlaced first = moved(*blocks, share.first * stride);
  const MaybePlaced last = moved(*rest, (share.first + share.whole * share.period) * stride);
  if (!first || !last) return std::nullopt;
  list.add(*first);
  list.add(*last);
  return list.finish();
}

std::optional<Made> refusal_of_dimension(const Distribution& how, std::size_t dimension) {
  const Count size = how.sizes[dimension], kind = how.kinds[dimension], argument = how.arguments[dimension];
  const Count processes = how.grid[dimension];
  if (size < 1) return refused_dimension(dimension, fmt::format("its size is {}: give 1 or more", size));
  if (processes < 1) return refused_dimension(dimension, fmt::format("it has {} processes: give 1 or more", processes));
  if (kind == kDistributeNone) {
    if (processes == 1) return std::nullopt;
    return refused_dimension(dimension, fmt::format("it is not distributed, but has {} processes", processes));
  }
  if (kind != kDistributeBlock && kind != kDistributeCyclic) {
    return refused_dimension(dimension, fmt::format("the distribution is {}: give one of MPI_DISTRIBUTE_*", kind));
  }
  if (argument == kDistributeDefault) return std::nullopt;
  if (argument < 1) return refused_dimension(dimension, fmt::format("the block has {} elements", argument));
  if (kind == kDistributeBlock && argument < (size - 1) / processes + 1) {
    return refused_dimension(
        dimension, fmt::format("{} processes with blocks of {} elements do not cover {}", processes, argument, size));
  }
  return std::nullopt;
}

std::optional<Made> refusal_of_grid(const Distribution& how) {
  if (how.processes < 1) return refused(ErrorClass::arg, fmt::format("the size is {}: give 1 or more", how.processes));
  if (how.rank < 0 || how.rank >= how.processes) {
    return refused(ErrorClass::arg, fmt::format("the rank is {}: give 0 to {}", how.rank, how.processes - 1));
  }
  Count product = 1;
  for (std::size_t i = 0; i < how.sizes.size(); ++i) {
    if (auto refusal = refusal_of_dimension(how, i)) return refusal;
    if (__builtin_mul_overflow(product, how.grid[i], &product)) return refused_size();
  }
  if (product == how.processes) return std::nullopt;
  return refused(ErrorClass::arg, fmt::format("the grid has {} processes, the size is {}", product, how.processes));
}

/// Ranks go through the grid with the last dimension first, whatever the order of the array.
std::vector<Count> grid_place(const Distribution& how) {
  std::vector<Count> place(how.grid.size());
  Count rank = how.rank;
  for (std::size_t i = how.grid.size(); i-- > 0; rank /= how.grid[i]) place[i] = rank % how.grid[i];
  return place;
}

}  // namespace

Made subarray_type(std::span<const Count> sizes, std::span<const Count> subsizes, std::span<const Count> starts,
                   int order, Datatype* old, CallForm form) {
  if (auto refusal = refusal_of_array(sizes.size(), order, old)) return *std::move(refusal);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (auto refusal = refusal_of_part(sizes[i], subsizes[i], starts[i], i)) return *std::move(refusal);
  }
  Datatype::Facts facts;
  add_elements(facts, *old);
  facts.levels += static_cast<std::uint32_t>(2 * sizes.size());
  ArgumentList arguments(facts.construction, Combiner::subarray, form);
  arguments.integer(static_cast<Count>(sizes.size()));
  arguments.counts(sizes);
  arguments.counts(subsizes);
  arguments.counts(starts);
  arguments.integer(order);
  arguments.type(old);
  const std::vector<std::size_t> places = inside_out(sizes.size(), order);
  std::vector<Count> strides;
  if (!measure_array(sizes, places, *old, facts.bounds, strides)) return refused_size();
  const bool fits = lay_trees(facts, alike(*old), [&](LayoutList::Join join) {
    MaybePlaced part = tree_of(*old, join);
    for (const std::size_t i : places) {
      part = make_loop(*part, static_cast<std::uint64_t>(subsizes[i]), strides[i]);
      if (part) part = moved(*part, starts[i] * strides[i]);
      if (!part) break;
    }
    return part;
  });
  return fits ? made(std::move(facts)) : refused_size();
}

Made darray_type(const Distribution& how, Datatype* old, CallForm form) {
  if (auto refusal = refusal_of_array(how.sizes.size(), how.order, old)) return *std::move(refusal);
  if (auto refusal = refusal_of_grid(how)) return *std::move(refusal);
  Datatype::Facts facts;
  add_elements(facts, *old);
  facts.levels += static_cast<std::uint32_t>(2 * how.sizes.size());
  ArgumentList arguments(facts.construction, Combiner::darray, form);
  arguments.integer(how.processes);
  arguments.integer(how.rank);
  arguments.integer(static_cast<Count>(how.sizes.size()));
  arguments.counts(how.sizes);
  arguments.integers(how.kinds);
  arguments.integers(how.arguments);
  arguments.integers(how.grid);
  arguments.integer(how.order);
  arguments.type(old);
  const std::vector<std::size_t> places = inside_out(how.sizes.size(), how.order);
  const std::vector<Count> coordinates = grid_place(how);
  std::vector<Count> strides;
  if (!measure_array(how.sizes, places, *old, facts.bounds, strides)) return refused_size();
  const bool fits = lay_trees(facts, alike(*old), [&](LayoutList::Join join) {
    MaybePlaced part = tree_of(*old, join);
    for (const std::size_t i : places) {
      const Share share = share_of(how.sizes[i], how.grid[i], coordinates[i], how.kinds[i], how.arguments[i]);
      part = lay_share(*part, share, strides[i], join);
      if (!part) break;
    }
    return part;
  });
  return fits ? made(std::move(facts)) : refused_size();
}

}  // namespace brant::mpi
