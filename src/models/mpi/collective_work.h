#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "brant/coll/collectives.h"
#include "models/mpi/checks/said_call.h"
#include "models/mpi/communicator.h"
#include "models/mpi/typed_buffer.h"
#include "models/mpi/types/op.h"

namespace brant::mpi {

/// One collective of MPI as a call of a team: what a member gives and gets as runs of bytes, with copies where the
/// program's data does not lie so, and what is to be done before and after. It is carried out once, or often.
class CollectiveWork {
 public:
  CollectiveWork();
  ~CollectiveWork();
  CollectiveWork(const CollectiveWork&) = delete;
  CollectiveWork& operator=(const CollectiveWork&) = delete;

  /// What this member gives.
  void give(const TypedBuffer& source);
  /// Blocks for each member, one behind the other where they are carried.
  void give(std::vector<TypedBuffer> blocks);
  /// What it gets.
  void get(const TypedBuffer& landing);
  void get(std::vector<TypedBuffer> blocks);
  /// What it gives as well as gets (MPI_Bcast, MPI_IN_PLACE).
  void give_and_get(const TypedBuffer& both);
  /// It gets what nobody wants to have: so many bytes.
  void get_nothing(std::size_t bytes);

  /// Gives and gets elements that are combined. `in_place`: what it gets has what it gives. Throws MPI_ERR_OP,
  /// MPI_ERR_TYPE.
  void combine(MPI_Op op, MPI_Datatype type, const TypedBuffer* source, const TypedBuffer* landing, bool in_place);

  /// For checks: elements that all members have to name alike, the operation with them if there is one.
  void say(MPI_Datatype type, MPI_Count count);

  /// What it gives and gets overlaps, as MPI_IN_PLACE of MPI_Reduce_scatter has it: what it gets comes by a copy.
  void keep_apart();

  /// What is told to the other members of it where calls are checked; else null.
  [[nodiscard]] const SaidCall* said(const char* function);

  /// Before each time.
  void prepare();
  /// After each time. Throws what the device reports.
  void finish();

  Collective call;
  std::vector<std::uint64_t> block_bytes;     ///< What `call.block_bytes` looks at.
  std::vector<std::uint64_t> in_block_bytes;  ///< What `call.in_block_bytes` looks at.

 private:
  /// How elements are combined that brant's collectives do not know.
  struct Combining {
    const Op* op = nullptr;
    const Datatype* type = nullptr;
    std::size_t element_bytes = 0;
    std::vector<std::byte> scratch;
  };
  static void combine_elements(void* context, void* accumulated, const void* next, std::uint64_t count) noexcept;
  std::byte* staging(std::size_t bytes);
  [[nodiscard]] static bool adjacent(const std::vector<TypedBuffer>& blocks) noexcept;
  [[nodiscard]] static std::size_t total(const std::vector<TypedBuffer>& blocks) noexcept;
  /// A copy of elements with the gaps between them, as the program's functions take them.
  std::byte* spread(const TypedBuffer& data);

  std::vector<std::function<void()>> before_;
  std::vector<std::function<void()>> after_;
  std::vector<std::unique_ptr<std::byte[]>> staging_;
  Combining combining_;
  UserReduce reduce_;
  Op* op_ = nullptr;
  DatatypeRef type_;
  std::unique_ptr<SaidCall> said_;
};

/// The operation of a handle, which the standard defines for the type. Throws MPI_ERR_OP.
[[nodiscard]] Op& op_for(MPI_Op handle, const Datatype& type);

/// Carries it out in the form in which it was called.
void carry_out(const struct Launch& how, Communicator& communicator, std::unique_ptr<CollectiveWork> work);

}  // namespace brant::mpi
