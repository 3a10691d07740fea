#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "brant/coll/reduce_op.h"

namespace brant::coll {

/// How elements are combined.
struct Folding {
  DataType type = DataType::bytes;
  ReduceOp op = ReduceOp::none;
  const UserReduce* user = nullptr;  ///< For ReduceOp::user.

  [[nodiscard]] std::size_t element_bytes() const noexcept {
    return op == ReduceOp::user ? user->element_bytes : data_type_bytes(type);
  }
};

/// `out[i] = ((inputs[0][i] op inputs[1][i]) op inputs[2][i]) ...` for `count` elements, in this order, whatever the
/// machine: the one place where elements are combined. `out` may be one of the inputs, or apart from all of them.
/// Nothing need be aligned. An average is divided by the number of inputs. `also`: gets the same; null: nobody.
void fold(const Folding& how, std::span<const void* const> inputs, void* out, std::uint64_t count,
          void* also = nullptr) noexcept;

}  // namespace brant::coll
