#include "models/mpi/types/op.h"

#include <algorithm>
#include <array>
#include <limits>

#include "models/mpi/types/basic_types.h"

namespace brant::mpi {
namespace {

template <typename... Groups>
constexpr std::uint32_t groups_of(Groups... groups) {
  return ((1u << static_cast<unsigned>(groups)) | ...);
}
constexpr std::uint32_t kOrdered =
    groups_of(TypeGroup::c_integer, TypeGroup::fortran_integer, TypeGroup::real, TypeGroup::multi_language);
constexpr std::uint32_t kSummed = kOrdered | groups_of(TypeGroup::complex);
constexpr std::uint32_t kTruths = groups_of(TypeGroup::c_integer, TypeGroup::logical);
constexpr std::uint32_t kBits =
    groups_of(TypeGroup::c_integer, TypeGroup::fortran_integer, TypeGroup::byte, TypeGroup::multi_language);
constexpr std::uint32_t kPlaced = groups_of(TypeGroup::pair);
constexpr std::uint32_t kAnything = ~0u;

constexpr std::uint16_t kFirstOp = 0x20;
constexpr std::size_t kOpNumbers = 0x1e;

struct PredefinedOps {
  std::array<Op*, kOpNumbers> ops{};

  void add(std::uint16_t number, std::string_view name, std::uint32_t groups, ReduceOp reduce) {
    ops[number - kFirstOp] = new Op(number, name, groups, reduce);
  }
  PredefinedOps() {
    add(0x21, "MPI_SUM", kSummed, ReduceOp::sum);
    add(0x22, "MPI_MIN", kOrdered, ReduceOp::min);
    add(0x23, "MPI_MAX", kOrdered, ReduceOp::max);
    add(0x24, "MPI_PROD", kSummed, ReduceOp::prod);
    add(0x28, "MPI_BAND", kBits, ReduceOp::bit_and);
    add(0x29, "MPI_BOR", kBits, ReduceOp::bit_or);
    add(0x2a, "MPI_BXOR", kBits, ReduceOp::bit_xor);
    add(0x30, "MPI_LAND", kTruths, ReduceOp::logical_and);
    add(0x31, "MPI_LOR", kTruths, ReduceOp::logical_or);
    add(0x32, "MPI_LXOR", kTruths, ReduceOp::logical_xor);
    add(0x38, "MPI_MINLOC", kPlaced, ReduceOp::min_place);
    add(0x39, "MPI_MAXLOC", kPlaced, ReduceOp::max_place);
    add(0x3c, "MPI_REPLACE", kAnything, ReduceOp::none);
    add(0x3d, "MPI_NO_OP", kAnything, ReduceOp::none);
  }
};

const PredefinedOps& predefined_ops() {
  static const auto* const all = new PredefinedOps;
  return *all;
}

}  // namespace

MPI_Op Op::handle() const noexcept {
  return op_handle(number_ != 0 ? number_ : reinterpret_cast<std::uintptr_t>(this));
}

void Op::call(const void* in, void* inout, Count count, Count extent, MPI_Datatype type) const {
  // The standard's functions take what they only read by a plain pointer.
  auto* from = static_cast<std::byte*>(const_cast<void*>(in));
  auto* to = static_cast<std::byte*>(inout);
  if (large_ != nullptr) return large_(from, to, &count, &type);
  const Count most = bound_.call != nullptr ? bound_.most : std::numeric_limits<int>::max();
  while (count > 0) {
    const Count taken = std::min(count, most);
    if (bound_.call != nullptr) {
      bound_.call(bound_.function, from, to, taken, type);
    } else {
      int some = static_cast<int>(taken);
      MPI_Datatype handle = type;
      function_(from, to, &some, &handle);
    }
    from += taken * extent;
    to += taken * extent;
    count -= taken;
  }
}

Op* find_op(MPI_Op handle) noexcept {
  const std::uintptr_t number = handle_number(handle);
  if (number <= kLastPredefined) {
    const std::uintptr_t place = number - kFirstOp;  // wraps around below the first
    return place < kOpNumbers ? predefined_ops().ops[place] : nullptr;
  }
  if (!may_point_to_object(number, alignof(Op))) return nullptr;
  auto* op = reinterpret_cast<Op*>(handle);
  return op->mark_ == Op::kMark ? op : nullptr;
}

}  // namespace brant::mpi
