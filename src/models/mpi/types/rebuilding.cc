#include <algorithm>
#include <vector>

#include "models/mpi/types/constructors.h"
#include "models/mpi/types/making.h"

namespace brant::mpi {
namespace {

/// Takes arguments in the order in which ArgumentList writes them down.
class ArgumentReader {
 public:
  explicit ArgumentReader(const Construction& construction)
      : construction_(construction), large_(construction.form == CallForm::counts) {}

  Count integer() { return take(construction_.integers, integer_); }
  Count count() { return large_ ? take(construction_.large_counts, large_count_) : integer(); }
  Count displacement() { return large_ ? count() : take(construction_.addresses, address_); }
  std::vector<Count> integers(Count number) {
    return several(number, [this] { return integer(); });
  }
  std::vector<Count> counts(Count number) {
    return several(number, [this] { return count(); });
  }
  std::vector<Count> displacements(Count number) {
    return several(number, [this] { return displacement(); });
  }
  /// Null: there is none.
  [[nodiscard]] Datatype* type(std::size_t place = 0) const {
    return place < construction_.types.size() ? construction_.types[place].get() : nullptr;
  }

 private:
  /// What is not there is 0: whoever made up the arguments gets a type, or a fault.
  template <typename Value>
  static Count take(const std::vector<Value>& values, std::size_t& next) {
    return next < values.size() ? values[next++] : 0;
  }
  /// Not more than there can be.
  template <typename Take>
  std::vector<Count> several(Count number, Take take) const {
    const std::size_t most =
        construction_.integers.size() + construction_.addresses.size() + construction_.large_counts.size();
    number = std::clamp<Count>(number, 0, static_cast<Count>(most));
    std::vector<Count> values;
    values.reserve(static_cast<std::size_t>(number));
    for (Count i = 0; i < number; ++i) values.push_back(take());
    return values;
  }

  const Construction& construction_;
  const bool large_;
  std::size_t integer_ = 0;
  std::size_t address_ = 0;
  std::size_t large_count_ = 0;
};

Made rebuilt_list(const Construction& from, ArgumentReader& read) {
  const Count count = read.count();
  if (from.combiner == Combiner::indexed_block || from.combiner == Combiner::hindexed_block) {
    const Count length = read.count();
    if (from.combiner == Combiner::indexed_block) {
      return indexed_block_type(length, read.counts(count), read.type(), from.form);
    }
    return hindexed_block_type(length, read.displacements(count), read.type(), from.form);
  }
  const std::vector<Count> lengths = read.counts(count);
  if (from.combiner == Combiner::indexed) return indexed_type(lengths, read.counts(count), read.type(), from.form);
  const std::vector<Count> displacements = read.displacements(count);
  if (from.combiner == Combiner::hindexed) return hindexed_type(lengths, displacements, read.type(), from.form);
  std::vector<Datatype*> types(lengths.size());
  for (std::size_t i = 0; i < types.size(); ++i) types[i] = read.type(i);
  return struct_type(lengths, displacements, types, from.form);
}

Made rebuilt_subarray(const Construction& from, ArgumentReader& read) {
  const Count dimensions = read.integer();
  const std::vector<Count> sizes = read.counts(dimensions);
  const std::vector<Count> subsizes = read.counts(dimensions);
  const std::vector<Count> starts = read.counts(dimensions);
  return subarray_type(sizes, subsizes, starts, static_cast<int>(read.integer()), read.type(), from.form);
}

Made rebuilt_darray(const Construction& from, ArgumentReader& read) {
  Distribution how;
  how.processes = read.integer();
  how.rank = read.integer();
  const Count dimensions = read.integer();
  const std::vector<Count> sizes = read.counts(dimensions);
  const std::vector<Count> kinds = read.integers(dimensions);
  const std::vector<Count> arguments = read.integers(dimensions);
  const std::vector<Count> grid = read.integers(dimensions);
  how.sizes = sizes;
  how.kinds = kinds;
  how.arguments = arguments;
  how.grid = grid;
  how.order = static_cast<int>(read.integer());
  return darray_type(how, read.type(), from.form);
}

}  // namespace

Made rebuilt_type(const Construction& from) {
  ArgumentReader read(from);
  switch (from.combiner) {
    case Combiner::dup: return dup_type(read.type());
    case Combiner::contiguous: return contiguous_type(read.count(), read.type(), from.form);
    case Combiner::vector: {
      const Count count = read.count();
      const Count length = read.count();
      return vector_type(count, length, read.count(), read.type(), from.form);
    }
    case Combiner::hvector: {
      const Count count = read.count();
      const Count length = read.count();
      return hvector_type(count, length, read.displacement(), read.type(), from.form);
    }
    case Combiner::indexed:
    case Combiner::hindexed:
    case Combiner::indexed_block:
    case Combiner::hindexed_block:
    case Combiner::structure: return rebuilt_list(from, read);
    case Combiner::subarray: return rebuilt_subarray(from, read);
    case Combiner::darray: return rebuilt_darray(from, read);
    case Combiner::resized: {
      const Count lb = read.displacement();
      return resized_type(read.type(), lb, read.displacement(), from.form);
    }
    default: return refused(ErrorClass::type, "a predefined type has no contents");
  }
}

}  // namespace brant::mpi
