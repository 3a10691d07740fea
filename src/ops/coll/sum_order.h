#pragma once

#include "brant/coll/team.h"
#include "ops/coll/fold.h"

namespace brant::coll {

/// Whether elements may be combined in parts, in any order: the bits are the same all the same, or the team's options
/// free the order of floats. An average is not the average of averages; f16 and bf16 would be rounded more than once.
inline bool combines_in_any_order(const Folding& how, SumOrder order) noexcept {
  switch (how.op) {
    case ReduceOp::sum:
    case ReduceOp::prod:
    case ReduceOp::min:
    case ReduceOp::max: break;
    case ReduceOp::logical_and:
    case ReduceOp::logical_or:
    case ReduceOp::logical_xor:
    case ReduceOp::bit_and:
    case ReduceOp::bit_or:
    case ReduceOp::bit_xor: return true;
    default: return false;
  }
  switch (how.type) {
    case DataType::f32:
    case DataType::f64: return order == SumOrder::free;
    case DataType::f16:
    case DataType::bf16: return false;
    default: return true;
  }
}

}  // namespace brant::coll
