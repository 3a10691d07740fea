#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "brant/coll/reduce_op.h"
#include "models/mpi/types/abi.h"
#include "models/mpi/types/bound_operation.h"

namespace brant::mpi {

/// The program's function of an operation: `inout[i] = in[i] op inout[i]`.
using UserFunction = void(void* in, void* inout, int* count, MPI_Datatype* type);
using UserFunctionLarge = void(void* in, void* inout, Count* count, MPI_Datatype* type);

/// An operation of MPI. Counts its references and never changes: any thread may use it.
class Op {
 public:
  /// One of the two functions is null.
  Op(UserFunction* function, UserFunctionLarge* large, bool commutes) noexcept
      : function_(function), large_(large), commutes_(commutes) {}
  Op(const BoundOperation& bound, bool commutes) noexcept : bound_(bound), commutes_(commutes) {}
  /// Predefined. `groups`: a bit for each TypeGroup that it is defined for. `reduce`: what brant calls it.
  Op(std::uint16_t number, std::string_view name, std::uint32_t groups, ReduceOp reduce) noexcept
      : number_(number), name_(name), groups_(groups), reduce_(reduce), commutes_(number != 0x3c) {}
  ~Op() { mark_ = 0; }
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  [[nodiscard]] MPI_Op handle() const noexcept;
  [[nodiscard]] bool predefined() const noexcept { return number_ != 0; }
  /// Of predefined ones: that of the handle. Else 0.
  [[nodiscard]] std::uint16_t number() const noexcept { return number_; }
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] bool commutes() const noexcept { return commutes_; }
  [[nodiscard]] std::uint32_t groups() const noexcept { return groups_; }
  [[nodiscard]] ReduceOp reduce() const noexcept { return reduce_; }

  /// Calls the program's function, in pieces where `count` is more than an int holds and the function takes an int.
  void call(const void* in, void* inout, Count count, Count extent, MPI_Datatype type) const;

  void retain() noexcept {
    if (!predefined()) references_.fetch_add(1, std::memory_order_relaxed);
  }
  void release() noexcept {
    if (!predefined() && references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  friend Op* find_op(MPI_Op handle) noexcept;
  static constexpr std::uint64_t kMark = 0x6272'616e'744f'7065;

  std::uint64_t mark_ = kMark;
  const std::uint16_t number_ = 0;
  const std::string_view name_ = "user";
  const std::uint32_t groups_ = 0;
  const ReduceOp reduce_ = ReduceOp::user;
  UserFunction* const function_ = nullptr;
  UserFunctionLarge* const large_ = nullptr;
  const BoundOperation bound_;
  const bool commutes_;
  std::atomic<std::uint32_t> references_ = 1;
};

/// The operation of a handle; null: MPI_OP_NULL, or no handle of one. A handle that was freed may be taken for one.
[[nodiscard]] Op* find_op(MPI_Op handle) noexcept;

}  // namespace brant::mpi
