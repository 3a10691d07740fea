#pragma once

#include "models/mpi/typed_buffer.h"
#include "models/mpi/types/op.h"
#include "models/mpi/windows/target_data.h"
#include "models/mpi/windows/transfer.h"

namespace brant::mpi {

class Window;

// How an origin gets at the memory of a member. What lies together goes by a segment; what does not, and what is
// combined, is done by this CPU where it reaches the memory, and else by a message that its owner carries out. None of
// them waits for the target. `request`: ends with the access, if it is not null.

/// The source may be reused when the window is synchronised, or when the request has ended.
void put(Window& window, const TypedBuffer& source, const TargetData& there, WindowRequest* request);
void get(Window& window, const TypedBuffer& landing, const TargetData& there, WindowRequest* request);

/// The two ends of MPI_Accumulate and MPI_Get_accumulate. `source` is null for MPI_NO_OP, and `landing` if nobody asks
/// what was there. Throws MPI_ERR_OP, MPI_ERR_TYPE.
struct Combination {
  const mpi::Op& op;
  const TypedBuffer* source = nullptr;
  const TypedBuffer* landing = nullptr;
};
void combine(Window& window, const Combination& how, const TargetData& there, WindowRequest* request);

/// One element each, of a predefined type.
void swap_if_equal(Window& window, const TypedBuffer& desired, const TypedBuffer& expected, const TypedBuffer& landing,
                   const TargetData& there);

}  // namespace brant::mpi
