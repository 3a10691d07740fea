#include "models/mpi/types/making.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace brant::mpi {

Made refused_size() {
  return refused(
      ErrorClass::value_too_large,
      "the type would have sizes or displacements that 63 bits do not hold: make it of fewer or nearer items");
}

std::optional<Made> refusal_of(const Datatype* old, std::uint32_t levels) {
  if (old == nullptr) return refused(ErrorClass::type, "the old type is MPI_DATATYPE_NULL, or no datatype");
  if (old->levels() + levels > kDepthMost) {
    return refused(ErrorClass::other, fmt::format("types nested more than {} levels deep: describe the same bytes with "
                                                  "fewer constructors",
                                                  kDepthMost));
  }
  return std::nullopt;
}

void add_elements(Datatype::Facts& facts, const Datatype& old) {
  facts.levels = std::max(facts.levels, old.levels());
  if (old.size() == 0) return;
  facts.alignment = std::max(facts.alignment, old.alignment());
  if (old.mixed() || (facts.element != nullptr && old.element() != nullptr && facts.element != old.element())) {
    facts.mixed = true;
  }
  if (facts.element == nullptr) facts.element = old.element();
  if (facts.mixed) facts.element = nullptr;
}

Made made(Datatype::Facts facts) {
  if (facts.layout.empty()) {  // whatever it was made of
    facts.alignment = 1;
    facts.element = nullptr;
    facts.mixed = false;
  }
  std::int64_t extent = 0;
  if (__builtin_sub_overflow(facts.bounds.high, facts.bounds.low, &extent) ||
      extent > std::numeric_limits<std::int64_t>::max() - facts.alignment ||
      __builtin_add_overflow(facts.bounds.low, extent + facts.alignment, &extent) ||
      __builtin_sub_overflow(facts.layout.high(), facts.layout.low(), &extent)) {
    return refused_size();
  }
  return {DatatypeRef::adopt(new Datatype(std::move(facts))), {}};
}

}  // namespace brant::mpi
