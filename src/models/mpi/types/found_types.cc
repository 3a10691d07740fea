#include "models/mpi/types/found_types.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <tuple>

#include <fmt/format.h>

#include "models/mpi/types/making.h"

namespace brant::mpi {
namespace {

/// The types that were found, for the life of the process.
class FoundTypes {
 public:
  /// That of these arguments; made of `element` when it is found first.
  DatatypeRef find(Combiner combiner, Count digits, Count range, std::uint16_t element) {
    const std::lock_guard lock(mutex_);
    Datatype*& type = types_[{combiner, digits, range}];
    if (type == nullptr) type = new Datatype(facts_of(combiner, digits, range, element), Datatype::Origin::predefined);
    return DatatypeRef(type);
  }

 private:
  static Datatype::Facts facts_of(Combiner combiner, Count digits, Count range, std::uint16_t element) {
    const Datatype& old = predefined_type(element);
    Datatype::Facts facts;
    add_elements(facts, old);
    facts.layout = old.layout();
    facts.told = old.told_layout();
    facts.bounds = old.bounds();
    ArgumentList arguments(facts.construction, combiner, CallForm::ints);
    arguments.integer(digits);
    if (combiner != Combiner::f90_integer) arguments.integer(range);
    return facts;
  }

  std::mutex mutex_;
  std::map<std::tuple<Combiner, Count, Count>, Datatype*> types_;
};

FoundTypes& found_types() {
  static auto* const all = new FoundTypes;
  return *all;
}

/// What a kind of Fortran holds at least.
struct Kind {
  Count digits;
  Count range;
  std::uint16_t real;
  std::uint16_t complex;
};
constexpr std::array<Kind, 4> kReals = {
    {{6, 37, 0x2d2, 0x2db}, {15, 307, 0x2da, 0x2e3}, {18, 4931, 0x220, 0x224}, {33, 4931, 0x2e2, 0x2eb}}};

struct IntegerKind {
  Count digits;
  std::uint16_t type;
};
constexpr std::array<IntegerKind, 5> kIntegers = {{{2, 0x2c1}, {4, 0x2c9}, {9, 0x2d1}, {18, 0x2d9}, {38, 0x2e1}}};

Made found_real(Combiner combiner, Count digits, Count range) {
  const bool asked = digits != kUndefined || range != kUndefined;
  const bool sound = (digits == kUndefined || digits >= 0) && (range == kUndefined || range >= 0);
  const auto* kind = std::find_if(kReals.begin(), kReals.end(),
                                  [&](const Kind& each) { return digits <= each.digits && range <= each.range; });
  if (!asked || !sound || kind == kReals.end()) {
    return refused(ErrorClass::arg,
                   fmt::format("no real type has {} digits and a range of {}: give at most 33 and 4931, "
                               "and one of them at least",
                               digits, range));
  }
  const std::uint16_t element = combiner == Combiner::f90_real ? kind->real : kind->complex;
  return {found_types().find(combiner, digits, range, element), {}};
}

struct Match {
  TypeClass type_class;
  std::uint16_t type;
};
constexpr Match kMatches[] = {{TypeClass::integer, 0x2c1}, {TypeClass::integer, 0x2c9}, {TypeClass::integer, 0x2d1},
                              {TypeClass::integer, 0x2d9}, {TypeClass::integer, 0x2e1}, {TypeClass::real, 0x2ca},
                              {TypeClass::real, 0x2d2},    {TypeClass::real, 0x2da},    {TypeClass::real, 0x2e2},
                              {TypeClass::complex, 0x2d3}, {TypeClass::complex, 0x2db}, {TypeClass::complex, 0x2e3},
                              {TypeClass::complex, 0x2eb}};

}  // namespace

Made f90_real_type(Count digits, Count range) { return found_real(Combiner::f90_real, digits, range); }
Made f90_complex_type(Count digits, Count range) { return found_real(Combiner::f90_complex, digits, range); }

Made f90_integer_type(Count digits) {
  const auto* kind = std::find_if(kIntegers.begin(), kIntegers.end(),
                                  [digits](const IntegerKind& each) { return digits <= each.digits; });
  if (digits < 0 || kind == kIntegers.end()) {
    return refused(ErrorClass::arg, fmt::format("no integer type has {} digits: give 0 to 38", digits));
  }
  return {found_types().find(Combiner::f90_integer, digits, 0, kind->type), {}};
}

Made matching_type(int type_class, Count bytes) {
  for (const Match& match : kMatches) {
    Datatype& type = predefined_type(match.type);
    if (static_cast<int>(match.type_class) == type_class && type.size() == bytes) return {DatatypeRef(&type), {}};
  }
  return refused(ErrorClass::arg, fmt::format("no type of class {} has {} bytes: give MPI_TYPECLASS_INTEGER, _REAL or "
                                              "_COMPLEX, and a size that Fortran has",
                                              type_class, bytes));
}

Datatype* value_index_type(const Datatype& value, const Datatype& place) noexcept {
  if (value.basic() == nullptr || place.basic() == nullptr) return nullptr;
  for (std::uint16_t i = 0; i < kTypeNumbers; ++i) {
    const BasicType& type = basic_type(i);
    const bool pair = type.representation == Representation::pair;
    if (pair && type.value == value.basic()->number && type.place == place.basic()->number) {
      return &predefined_type(type.number);
    }
  }
  return nullptr;
}

}  // namespace brant::mpi
