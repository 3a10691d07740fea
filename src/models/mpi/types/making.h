#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "models/mpi/types/constructors.h"

/// What all constructors do.
namespace brant::mpi {

inline Made refused(ErrorClass error, std::string text) { return {{}, {error, std::move(text)}}; }
Made refused_size();

/// Nothing, or why `old` cannot be built on by a constructor that adds so many levels.
std::optional<Made> refusal_of(const Datatype* old, std::uint32_t levels);

/// The tree of a type in which runs are joined so.
inline const Placed& tree_of(const Datatype& type, LayoutList::Join join) noexcept {
  return join == LayoutList::Join::all ? type.layout() : type.told_layout();
}

/// Takes over what a new type has from a type in it.
void add_elements(Datatype::Facts& facts, const Datatype& old);

/// Lays out a new type: `lay` makes its tree of those of other types, for either way to join runs. False: it does not
/// fit. `alike`: all of them are of one basic type, so that one tree does for both.
template <typename Lay>
bool lay_trees(Datatype::Facts& facts, bool alike, const Lay& lay) {
  MaybePlaced told = lay(LayoutList::Join::same);
  if (!told) return false;
  facts.told = *std::move(told);
  if (alike) {
    facts.layout = facts.told;
    return true;
  }
  MaybePlaced all = lay(LayoutList::Join::all);
  if (!all) return false;
  facts.layout = *std::move(all);
  return true;
}
inline bool alike(const Datatype& type) noexcept { return type.layout().layout == type.told_layout().layout; }

/// The type, if its bounds fit.
Made made(Datatype::Facts facts);

/// Writes down arguments in the order of the standard: as integers, or as large counts.
class ArgumentList {
 public:
  ArgumentList(Construction& construction, Combiner combiner, CallForm form) : construction_(construction) {
    construction.combiner = combiner;
    construction.form = form;
  }
  void integer(Count value) { construction_.integers.push_back(static_cast<int>(value)); }
  void count(Count value) {
    if (large()) construction_.large_counts.push_back(value);
    if (!large()) integer(value);
  }
  void counts(std::span<const Count> values) {
    for (const Count value : values) count(value);
  }
  void integers(std::span<const Count> values) {
    for (const Count value : values) integer(value);
  }
  /// A displacement, which is an address in the form with `int`.
  void displacement(Count value) {
    if (large()) construction_.large_counts.push_back(value);
    if (!large()) construction_.addresses.push_back(value);
  }
  void displacements(std::span<const Count> values) {
    for (const Count value : values) displacement(value);
  }
  void type(Datatype* type) { construction_.types.emplace_back(type); }

 private:
  [[nodiscard]] bool large() const noexcept { return construction_.form == CallForm::counts; }
  Construction& construction_;
};

}  // namespace brant::mpi
