#include "models/mpi/types/constructors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "models/mpi/types/making.h"

namespace brant::mpi {
namespace {

/// A type of one old type, so far.
Datatype::Facts facts_with(const Datatype& old, std::uint32_t levels) {
  Datatype::Facts facts;
  add_elements(facts, old);
  facts.levels += levels;
  return facts;
}

Made refused_length(Count length) {
  return refused(ErrorClass::arg, fmt::format("a block length is {}: give 0 or more", length));
}
Made refused_count(Count count) {
  return refused(ErrorClass::count, fmt::format("the count is {}: give 0 or more", count));
}

/// Blocks of `length` items of `old`, one every `stride` bytes.
Made strided(Datatype::Facts facts, const Datatype& old, Count count, Count length, Count stride) {
  const bool fits = lay_trees(facts, alike(old), [&](LayoutList::Join join) -> MaybePlaced {
    const MaybePlaced block = make_loop(tree_of(old, join), static_cast<std::uint64_t>(length), old.extent());
    return block ? make_loop(*block, static_cast<std::uint64_t>(count), stride) : std::nullopt;
  });
  std::optional<Bounds> bounds = old.bounds().repeated(length, old.extent());
  if (bounds) bounds = bounds->repeated(count, stride);
  if (!fits || !bounds) return refused_size();
  facts.bounds = *bounds;
  return made(std::move(facts));
}

/// Blocks of one type, one behind the other; those of equal length share a layout.
class BlockList {
 public:
  BlockList(const Datatype& old, LayoutList::Join join, LayoutList& list)
      : tree_(tree_of(old, join)), extent_(old.extent()), list_(list) {}

  [[nodiscard]] bool add(Count length, Count displacement) {
    if (length == 0 || tree_.empty()) return true;
    if (length != length_) {
      block_ = make_loop(tree_, static_cast<std::uint64_t>(length), extent_);
      length_ = length;
    }
    if (!block_) return false;
    const MaybePlaced there = moved(*block_, displacement);
    if (there) list_.add(*there);
    return there.has_value();
  }

 private:
  const Placed& tree_;
  const Count extent_;
  LayoutList& list_;
  Count length_ = 0;
  MaybePlaced block_;
};

/// Where the blocks of an indexed type are.
struct Blocks {
  std::span<const Count> lengths;  ///< One: of all.
  std::span<const Count> displacements;
  Count unit = 1;  ///< Of displacements, in bytes.

  [[nodiscard]] std::size_t size() const noexcept { return displacements.size(); }
  [[nodiscard]] Count length(std::size_t i) const noexcept { return lengths[lengths.size() == 1 ? 0 : i]; }
  /// False: it does not fit.
  [[nodiscard]] bool place(std::size_t i, Count& bytes) const noexcept {
    return !__builtin_mul_overflow(displacements[i], unit, &bytes);
  }
};

MaybePlaced lay_blocks(const Blocks& blocks, const Datatype& old, LayoutList::Join join) {
  LayoutList list(join);
  BlockList all(old, join, list);
  list.reserve(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Count place = 0;
    if (!blocks.place(i, place) || !all.add(blocks.length(i), place)) return std::nullopt;
  }
  return list.finish();
}

/// False: it does not fit.
bool add_bounds(Bounds& bounds, const Datatype& old, Count length, Count displacement) {
  std::optional<Bounds> block = old.bounds().repeated(length, old.extent());
  if (block) block = block->moved(displacement);
  if (block) bounds.add(*block);
  return block.has_value();
}

Made indexed(Datatype::Facts facts, const Datatype& old, const Blocks& blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Count place = 0;
    if (!blocks.place(i, place) || !add_bounds(facts.bounds, old, blocks.length(i), place)) return refused_size();
  }
  if (!lay_trees(facts, alike(old), [&](LayoutList::Join join) { return lay_blocks(blocks, old, join); })) {
    return refused_size();
  }
  return made(std::move(facts));
}

std::optional<Made> refusal_of_lengths(std::span<const Count> lengths) {
  const auto wrong = std::find_if(lengths.begin(), lengths.end(), [](Count length) { return length < 0; });
  if (wrong == lengths.end()) return std::nullopt;
  return refused(ErrorClass::arg,
                 fmt::format("block length {} is {}: give 0 or more", wrong - lengths.begin(), *wrong));
}

/// Indexed types with a length for each block.
Made indexed_by(Combiner combiner, std::span<const Count> lengths, std::span<const Count> displacements, Datatype* old,
                CallForm form) {
  if (auto refusal = refusal_of(old, 2)) return *std::move(refusal);
  if (auto refusal = refusal_of_lengths(lengths)) return *std::move(refusal);
  Datatype::Facts facts = facts_with(*old, 2);
  ArgumentList arguments(facts.construction, combiner, form);
  arguments.count(static_cast<Count>(lengths.size()));
  arguments.counts(lengths);
  const bool bytes = combiner == Combiner::hindexed;
  bytes ? arguments.displacements(displacements) : arguments.counts(displacements);
  arguments.type(old);
  return indexed(std::move(facts), *old, {lengths, displacements, bytes ? 1 : old->extent()});
}

/// And with one for all.
Made indexed_block_by(Combiner combiner, Count length, std::span<const Count> displacements, Datatype* old,
                      CallForm form) {
  if (auto refusal = refusal_of(old, 2)) return *std::move(refusal);
  if (length < 0) return refused_length(length);
  Datatype::Facts facts = facts_with(*old, 2);
  ArgumentList arguments(facts.construction, combiner, form);
  arguments.count(static_cast<Count>(displacements.size()));
  arguments.count(length);
  const bool bytes = combiner == Combiner::hindexed_block;
  bytes ? arguments.displacements(displacements) : arguments.counts(displacements);
  arguments.type(old);
  return indexed(std::move(facts), *old, {{&length, 1}, displacements, bytes ? 1 : old->extent()});
}

}  // namespace

Made contiguous_type(Count count, Datatype* old, CallForm form) {
  if (auto refusal = refusal_of(old, 1)) return *std::move(refusal);
  if (count < 0) return refused_count(count);
  Datatype::Facts facts = facts_with(*old, 1);
  ArgumentList arguments(facts.construction, Combiner::contiguous, form);
  arguments.count(count);
  arguments.type(old);
  return strided(std::move(facts), *old, count, 1, old->extent());
}

Made vector_type(Count count, Count length, Count stride, Datatype* old, CallForm form) {
  if (auto refusal = refusal_of(old, 2)) return *std::move(refusal);
  if (count < 0) return refused_count(count);
  if (length < 0) return refused_length(length);
  Count bytes = 0;
  if (__builtin_mul_overflow(stride, old->extent(), &bytes)) return refused_size();
  Datatype::Facts facts = facts_with(*old, 2);
  ArgumentList arguments(facts.construction, Combiner::vector, form);
  arguments.count(count);
  arguments.count(length);
  arguments.count(stride);
  arguments.type(old);
  return strided(std::move(facts), *old, count, length, bytes);
}

Made hvector_type(Count count, Count length, Count stride, Datatype* old, CallForm form) {
  if (auto refusal = refusal_of(old, 2)) return *std::move(refusal);
  if (count < 0) return refused_count(count);
  if (length < 0) return refused_length(length);
  Datatype::Facts facts = facts_with(*old, 2);
  ArgumentList arguments(facts.construction, Combiner::hvector, form);
  arguments.count(count);
  arguments.count(length);
  arguments.displacement(stride);
  arguments.type(old);
  return strided(std::move(facts), *old, count, length, stride);
}

Made indexed_type(std::span<const Count> lengths, std::span<const Count> displacements, Datatype* old, CallForm form) {
  return indexed_by(Combiner::indexed, lengths, displacements, old, form);
}
Made hindexed_type(std::span<const Count> lengths, std::span<const Count> displacements, Datatype* old, CallForm form) {
  return indexed_by(Combiner::hindexed, lengths, displacements, old, form);
}
Made indexed_block_type(Count length, std::span<const Count> displacements, Datatype* old, CallForm form) {
  return indexed_block_by(Combiner::indexed_block, length, displacements, old, form);
}
Made hindexed_block_type(Count length, std::span<const Count> displacements, Datatype* old, CallForm form) {
  return indexed_block_by(Combiner::hindexed_block, length, displacements, old, form);
}

Made struct_type(std::span<const Count> lengths, std::span<const Count> displacements, std::span<Datatype* const> types,
                 CallForm form) {
  for (const Datatype* type : types) {
    if (auto refusal = refusal_of(type, 2)) return *std::move(refusal);
  }
  if (auto refusal = refusal_of_lengths(lengths)) return *std::move(refusal);
  Datatype::Facts facts;
  ArgumentList arguments(facts.construction, Combiner::structure, form);
  arguments.count(static_cast<Count>(lengths.size()));
  arguments.counts(lengths);
  arguments.displacements(displacements);
  bool one_tree = true;
  for (std::size_t i = 0; i < types.size(); ++i) {
    arguments.type(types[i]);
    if (!add_bounds(facts.bounds, *types[i], lengths[i], displacements[i])) return refused_size();
    if (lengths[i] == 0) {
      facts.levels = std::max(facts.levels, types[i]->levels());
      continue;
    }
    add_elements(facts, *types[i]);
    one_tree = one_tree && alike(*types[i]);
  }
  facts.levels += 2;
  const bool fits = lay_trees(facts, one_tree && !facts.mixed, [&](LayoutList::Join join) -> MaybePlaced {
    LayoutList list(join);
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!BlockList(*types[i], join, list).add(lengths[i], displacements[i])) return std::nullopt;
    }
    return list.finish();
  });
  return fits ? made(std::move(facts)) : refused_size();
}

Made resized_type(Datatype* old, Count lb, Count extent, CallForm form) {
  if (auto refusal = refusal_of(old, 1)) return *std::move(refusal);
  Datatype::Facts facts = facts_with(*old, 1);
  ArgumentList arguments(facts.construction, Combiner::resized, form);
  arguments.displacement(lb);
  arguments.displacement(extent);
  arguments.type(old);
  facts.layout = old->layout();
  facts.told = old->told_layout();
  facts.bounds = {true, true, lb, 0};
  if (__builtin_add_overflow(lb, extent, &facts.bounds.high)) return refused_size();
  return made(std::move(facts));
}

Made dup_type(Datatype* old) {
  if (auto refusal = refusal_of(old, 1)) return *std::move(refusal);
  Datatype::Facts facts = facts_with(*old, 1);
  ArgumentList(facts.construction, Combiner::dup, CallForm::ints).type(old);
  facts.layout = old->layout();
  facts.told = old->told_layout();
  facts.bounds = old->bounds();
  Made result = made(std::move(facts));
  if (result.ok() && old->committed()) result.type->commit();
  return result;
}

}  // namespace brant::mpi
