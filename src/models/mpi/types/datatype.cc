#include "models/mpi/types/datatype.h"

#include <array>
#include <utility>

namespace brant::mpi {
namespace {

Placed run_of(const BasicType& basic) {
  return *make_run(basic.bytes, static_cast<std::uint16_t>(basic.number - kFirstType));
}

/// A value and a place as C lays out a structure of them.
void lay_pair(Datatype::Facts& facts, const BasicType& pair) {
  const BasicType& value = basic_type(static_cast<std::uint16_t>(pair.value - kFirstType));
  const BasicType& place = basic_type(static_cast<std::uint16_t>(pair.place - kFirstType));
  const std::int64_t alignment = place.alignment;
  const std::int64_t behind = (value.bytes + alignment - 1) / alignment * alignment;
  for (const auto join : {LayoutList::Join::all, LayoutList::Join::same}) {
    if (pair.value == pair.place && join == LayoutList::Join::all) continue;
    LayoutList list(join);
    list.add(run_of(value));
    list.add(*moved(run_of(place), behind));
    (join == LayoutList::Join::all ? facts.layout : facts.told) = *list.finish();
  }
  if (pair.value == pair.place) facts.layout = facts.told;
}

Datatype::Facts facts_of(const BasicType& basic) {
  Datatype::Facts facts;
  if (basic.representation == Representation::pair) {
    lay_pair(facts, basic);
  } else {
    facts.layout = facts.told = run_of(basic);
  }
  facts.bounds = {true, false, facts.layout.low(), facts.layout.high()};
  facts.alignment = basic.alignment;
  facts.levels = 4;  // of a pair
  facts.name = basic.name;
  return facts;
}

/// All of them, for the life of the process: programs free types in functions that run at its end.
struct Predefined {
  std::array<Datatype*, kTypeNumbers> types{};

  Predefined() {
    for (std::uint16_t place = 1; place < kTypeNumbers; ++place) {
      const BasicType& basic = basic_type(place);
      if (basic.number != 0) types[place] = new Datatype(facts_of(basic), Datatype::Origin::predefined, &basic);
    }
  }
};

const Predefined& all_predefined() {
  static const auto* const all = new Predefined;
  return *all;
}

}  // namespace

Datatype::Datatype(Facts facts, Origin origin, const BasicType* basic)
    : facts_(std::move(facts)), basic_(basic), predefined_(origin == Origin::predefined), committed_(predefined_) {
  if (facts_.element == nullptr && !facts_.mixed && basic != nullptr) facts_.element = this;
  size_ = static_cast<Count>(facts_.layout.bytes());
  lb_ = facts_.bounds.low;
  extent_ = facts_.bounds.high - facts_.bounds.low;
  if (!facts_.bounds.set) {  // so that what follows is aligned
    const auto alignment = static_cast<Count>(facts_.alignment);
    extent_ += (alignment - extent_ % alignment) % alignment;
  }
  contiguous_ = size_ == extent_ && lb_ == 0 &&
                (size_ == 0 || (facts_.layout.offset == 0 && facts_.layout.layout->form == Layout::Form::run));
}

MPI_Datatype Datatype::handle() const noexcept {
  return type_handle(basic_ != nullptr ? basic_->number : reinterpret_cast<std::uintptr_t>(this));
}

Count Datatype::bytes_of(Count items) const noexcept {
  Count bytes = 0;
  return items < 0 || __builtin_mul_overflow(items, size_, &bytes) ? -1 : bytes;
}

void Datatype::release() noexcept {
  if (predefined_ || references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // What goes with the attachment may still look at the type, and hold it meanwhile: the program's functions do.
  references_.store(1, std::memory_order_relaxed);
  attachment_.reset();
  delete this;
}

Datatype* find_datatype(MPI_Datatype handle) noexcept {
  const std::uintptr_t number = handle_number(handle);
  if (number <= kLastPredefined) {
    const std::uintptr_t place = number - kFirstType;  // wraps around below the first
    return place < kTypeNumbers ? all_predefined().types[place] : nullptr;
  }
  if (!may_point_to_object(number, alignof(Datatype))) return nullptr;
  auto* type = reinterpret_cast<Datatype*>(handle);
  return type->mark_ == Datatype::kMark ? type : nullptr;
}

Datatype& predefined_type(std::uint16_t number) noexcept { return *all_predefined().types[number - kFirstType]; }

}  // namespace brant::mpi
