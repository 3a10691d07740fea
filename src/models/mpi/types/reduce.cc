#include "models/mpi/types/reduce.h"

#include <array>
#include <bit>
#include <complex>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "models/mpi/types/basic_types.h"
#include "models/mpi/types/walk.h"
#include "ops/coll/element.h"
#include "ops/coll/fold.h"

namespace brant::mpi {
namespace {

__extension__ using Wide = __int128;
__extension__ using WideBits = unsigned __int128;
#ifdef __SIZEOF_FLOAT128__
__extension__ using Quad = __float128;
#else
using Quad = long double;
static_assert(sizeof(Quad) == 16);
#endif

constexpr std::uint16_t kReplace = 0x3c;
constexpr std::uint16_t kNoOp = 0x3d;

/// The predefined type whose elements a reduction combines: the type itself, or what it is a copy of.
const BasicType* reduced_type(const Datatype& type) noexcept {
  const Datatype* origin = &type;
  while (origin->construction().combiner == Combiner::dup) origin = origin->construction().types[0].get();
  if (origin->predefined() && origin->element() != nullptr) return origin->element()->basic();
  return origin->basic();
}

std::optional<DataType> whole_number(std::uint32_t bytes, bool is_signed) noexcept {
  switch (bytes) {
    case 1: return is_signed ? DataType::i8 : DataType::u8;
    case 2: return is_signed ? DataType::i16 : DataType::u16;
    case 4: return is_signed ? DataType::i32 : DataType::u32;
    case 8: return is_signed ? DataType::i64 : DataType::u64;
    default: return std::nullopt;
  }
}

std::optional<DataType> real_number(std::uint32_t bytes) noexcept {
  switch (bytes) {
    case 2: return DataType::f16;
    case 4: return DataType::f32;
    case 8: return DataType::f64;
    default: return std::nullopt;
  }
}

/// How brant's collectives know elements of the type, if they do.
std::optional<DataType> data_type_of(const BasicType& type) noexcept {
  switch (type.representation) {
    case Representation::signed_integer: return whole_number(type.bytes, true);
    case Representation::unsigned_integer: return whole_number(type.bytes, false);
    case Representation::real: return real_number(type.bytes);
    case Representation::boolean:
      return type.number == 0x238 || type.number == 0x239 ? DataType::boolean : whole_number(type.bytes, true);
    case Representation::none: return type.group == TypeGroup::byte ? std::optional(DataType::u8) : std::nullopt;
    case Representation::pair: break;
    default: return std::nullopt;
  }
  if (type.number == 0x22b || type.number == 0x232) return DataType::i32_i32;
  if (type.number == 0x228) return DataType::f32_i32;
  return std::nullopt;
}

std::optional<BrantReduction> brant_reduction_of(const Op& op, const BasicType& type) noexcept {
  if (!op.predefined() || op.reduce() == ReduceOp::none) return std::nullopt;
  if (type.representation == Representation::complex) {
    const std::optional<DataType> part = real_number(type.bytes / 2);
    if (!part || op.reduce() != ReduceOp::sum) return std::nullopt;
    return BrantReduction{*part, ReduceOp::sum, 2};
  }
  const std::optional<DataType> known = data_type_of(type);
  if (!known || !can_reduce(*known, op.reduce())) return std::nullopt;
  return BrantReduction{*known, op.reduce(), 1};
}

/// Elements that brant's collectives do not know, one after the other.
template <typename T, typename Combine>
void combine_each(const std::byte* in, std::byte* inout, Count count, Count stride, Combine combine) noexcept {
  for (Count i = 0; i < count; ++i, in += stride, inout += stride) {
    T a;
    T b;
    std::memcpy(&a, in, sizeof(T));
    std::memcpy(&b, inout, sizeof(T));
    const T result = combine(a, b);
    std::memcpy(inout, &result, sizeof(T));
  }
}

/// What is to be combined: in and inout, at distances of `stride`.
struct Operands {
  const std::byte* in;
  std::byte* inout;
  Count count;
  Count stride;

  template <typename T, typename Combine>
  void each(Combine combine) const noexcept {
    combine_each<T>(in, inout, count, stride, combine);
  }
};

template <typename T>
void combine_reals(const Operands& operands, ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::sum: return operands.each<T>(coll::Sum{});
    case ReduceOp::prod: return operands.each<T>(coll::Product{});
    case ReduceOp::min: return operands.each<T>(coll::Least{});
    case ReduceOp::max: return operands.each<T>(coll::Greatest{});
    default: return;
  }
}

/// Whole numbers of 16 bytes, which wrap around without a sign.
void combine_wide(const Operands& operands, ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::sum: return operands.each<WideBits>([](WideBits a, WideBits b) { return a + b; });
    case ReduceOp::prod: return operands.each<WideBits>([](WideBits a, WideBits b) { return a * b; });
    case ReduceOp::min: return operands.each<Wide>(coll::Least{});
    case ReduceOp::max: return operands.each<Wide>(coll::Greatest{});
    case ReduceOp::bit_and: return operands.each<Wide>(coll::BitAnd{});
    case ReduceOp::bit_or: return operands.each<Wide>(coll::BitOr{});
    case ReduceOp::bit_xor: return operands.each<Wide>(coll::BitXor{});
    case ReduceOp::logical_and: return operands.each<Wide>(coll::LogicalAnd{});
    case ReduceOp::logical_or: return operands.each<Wide>(coll::LogicalOr{});
    case ReduceOp::logical_xor: return operands.each<Wide>(coll::LogicalXor{});
    default: return;
  }
}

template <typename T>
struct Parts {
  T real;
  T imaginary;
};

/// Sorts as those of ops/coll/element.h, which say how a part is stored.
template <typename Sort>
void combine_complex(const Operands& operands, ReduceOp op) noexcept {
  using Stored = Parts<typename Sort::Stored>;
  using Acc = typename Sort::Acc;
  const auto by = [&](auto combine) {
    operands.each<Stored>([combine](const Stored& a, const Stored& b) {
      const Parts<Acc> result = combine(Parts<Acc>{Sort::load(a.real), Sort::load(a.imaginary)},
                                        Parts<Acc>{Sort::load(b.real), Sort::load(b.imaginary)});
      return Stored{Sort::store(result.real), Sort::store(result.imaginary)};
    });
  };
  if (op == ReduceOp::sum) {
    by([](Parts<Acc> a, Parts<Acc> b) { return Parts<Acc>{a.real + b.real, a.imaginary + b.imaginary}; });
  } else if (op == ReduceOp::prod) {
    by([](Parts<Acc> a, Parts<Acc> b) {
      return Parts<Acc>{a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
    });
  }
}

/// Pairs as C lays them out. What lies between value and place stays as it is.
template <typename V, typename P>
void combine_pairs(const Operands& operands, ReduceOp op) noexcept {
  constexpr std::size_t kPlace = (sizeof(V) + alignof(P) - 1) / alignof(P) * alignof(P);
  const bool least = op == ReduceOp::min_place;
  for (Count i = 0; i < operands.count; ++i) {
    const std::byte* in = operands.in + i * operands.stride;
    std::byte* inout = operands.inout + i * operands.stride;
    V value[2];
    P place[2];
    std::memcpy(&value[0], in, sizeof(V));
    std::memcpy(&value[1], inout, sizeof(V));
    std::memcpy(&place[0], in + kPlace, sizeof(P));
    std::memcpy(&place[1], inout + kPlace, sizeof(P));
    const bool equal = value[0] == value[1];
    const bool second = equal ? place[1] < place[0] : (least ? value[1] < value[0] : value[0] < value[1]);
    if (second) continue;
    std::memcpy(inout, in, sizeof(V));
    std::memcpy(inout + kPlace, in + kPlace, sizeof(P));
  }
}

void combine_pairs_of(const BasicType& type, const Operands& operands, ReduceOp op) noexcept {
  switch (type.number) {
    case 0x228: return combine_pairs<float, int>(operands, op);
    case 0x229: return combine_pairs<double, int>(operands, op);
    case 0x22a: return combine_pairs<long, int>(operands, op);
    case 0x22b:
    case 0x232: return combine_pairs<int, int>(operands, op);
    case 0x22c: return combine_pairs<short, int>(operands, op);
    case 0x22d: return combine_pairs<long double, int>(operands, op);
    case 0x230: return combine_pairs<float, float>(operands, op);
    case 0x231: return combine_pairs<double, double>(operands, op);
    default: return;
  }
}

void combine_complex_of(const BasicType& type, const Operands& operands, ReduceOp op) noexcept {
  switch (type.bytes) {
    case 4: return combine_complex<coll::Half>(operands, op);
    case 8: return combine_complex<coll::Plain<float>>(operands, op);
    case 16: return combine_complex<coll::Plain<double>>(operands, op);
    default: break;
  }
  if (type.number == 0x2eb) return combine_complex<coll::Plain<Quad>>(operands, op);
  combine_complex<coll::Plain<long double>>(operands, op);
}

/// Elements of one predefined type, at distances of its extent.
void combine_elements(const Op& op, const BasicType& type, const Operands& operands) noexcept {
  if (const auto known = brant_reduction_of(op, type); known && operands.stride == static_cast<Count>(type.bytes)) {
    const std::array<const void*, 2> inputs = {operands.in, operands.inout};
    return coll::fold({known->type, known->op, nullptr}, inputs, operands.inout,
                      static_cast<std::uint64_t>(operands.count * known->elements));
  }
  switch (type.representation) {
    case Representation::pair: return combine_pairs_of(type, operands, op.reduce());
    case Representation::complex: return combine_complex_of(type, operands, op.reduce());
    case Representation::real:
      if (type.number == 0x2e2) return combine_reals<Quad>(operands, op.reduce());
      return combine_reals<long double>(operands, op.reduce());
    default: return combine_wide(operands, op.reduce());
  }
}

/// Goes along the runs of a type of which the two operands are laid out alike.
class ElementCombiner {
 public:
  ElementCombiner(const Op& op, const Datatype& element, std::int64_t distance) noexcept
      : op_(op), element_(element), distance_(distance) {}

  void run(std::int64_t at, std::uint64_t bytes, std::uint16_t /*basic*/) const noexcept {
    auto* inout = std::bit_cast<std::byte*>(static_cast<std::uintptr_t>(at));
    const auto* in = std::bit_cast<const std::byte*>(static_cast<std::uintptr_t>(at + distance_));
    if (op_.number() == kReplace) {
      std::memmove(inout, in, bytes);
      return;
    }
    Count count = static_cast<Count>(bytes) / element_.size();
    // Value and place of MPI_SHORT_INT are two runs, of which the first one stands for the pair.
    if (count == 0 && bytes < element_.alignment()) count = 1;
    combine_elements(op_, *element_.basic(), {in, inout, count, element_.size()});
  }
  void loop(std::int64_t at, const Layout& item, std::uint64_t count, std::int64_t stride) const noexcept {
    for (std::uint64_t i = 0; i < count; ++i) run(at + static_cast<std::int64_t>(i) * stride, item.bytes, 0);
  }
  void runs(std::int64_t base, const Layout& list, std::size_t first, std::size_t last) const noexcept {
    std::uint64_t start = first == 0 ? 0 : list.runs[first - 1].end;
    for (std::size_t i = first; i < last; ++i) {
      run(base + list.runs[i].offset, list.runs[i].end - start, 0);
      start = list.runs[i].end;
    }
  }

 private:
  const Op& op_;
  const Datatype& element_;
  const std::int64_t distance_;
};

}  // namespace

Fault check_reduce(const Op& op, const Datatype& type, ReduceUse use) {
  if (!op.predefined()) {
    if (use == ReduceUse::reduction) return {};
    return {ErrorClass::op, "an accumulate takes predefined operations only"};
  }
  const bool moves = op.number() == kReplace || op.number() == kNoOp;
  if (moves && use == ReduceUse::reduction) {
    return {ErrorClass::op, fmt::format("{} is for accumulates, not for reductions", op.name())};
  }
  if (moves) return {};
  const BasicType* basic = reduced_type(type);
  if (basic == nullptr && use == ReduceUse::accumulate && type.element() != nullptr) basic = type.element()->basic();
  if (basic == nullptr) {
    return {ErrorClass::op, fmt::format("{} is defined for predefined types alone: make an operation of your own for "
                                        "the derived type \"{}\"",
                                        op.name(), type.name())};
  }
  if ((op.groups() >> static_cast<unsigned>(basic->group) & 1u) != 0) return {};
  return {ErrorClass::op, fmt::format("{} is not defined for {}", op.name(), basic->name)};
}

void reduce_local(const Op& op, const void* in, void* inout, Count count, const Datatype& type) {
  if (count <= 0 || type.size() == 0 || op.number() == kNoOp) return;
  if (!op.predefined()) return op.call(in, inout, count, type.extent(), type.handle());
  const BasicType* basic = reduced_type(type);
  if (basic != nullptr && op.number() != kReplace) {
    return combine_elements(op, *basic,
                            {static_cast<const std::byte*>(in), static_cast<std::byte*>(inout), count, type.extent()});
  }
  const auto to = static_cast<std::int64_t>(std::bit_cast<std::uintptr_t>(inout));
  const auto from = static_cast<std::int64_t>(std::bit_cast<std::uintptr_t>(in));
  const Datatype& element = type.element() != nullptr ? *type.element() : type;
  const ElementCombiner combiner(op, element, from - to);
  walk_loop(*type.layout().layout, to + type.layout().offset, type.extent(), 0,
            static_cast<std::uint64_t>(type.bytes_of(count)), combiner);
}

std::optional<BrantReduction> brant_reduction(const Op& op, const Datatype& type) noexcept {
  const BasicType* basic = reduced_type(type);
  if (basic == nullptr || type.extent() != static_cast<Count>(basic->bytes)) return std::nullopt;
  return brant_reduction_of(op, *basic);
}

}  // namespace brant::mpi
