#pragma once

#include "ops/courier/courier.h"
#include "rows.h"
#include "transfers.h"

namespace brant::bench {

/// What the program beside it notices of a courier. One process; orders go within its own GPU.
///
/// How long starting it takes, what a device-wide synchronisation waits for it, what an idle one costs a kernel that
/// uses all the memory bandwidth, and that a kernel on every SM neither stalls nor loses orders. Throws Error.
void measure_coexistence(port::Device& device, MemoryKind kind, const CourierOptions& options, Buffers& buffers,
                         std::uint64_t* flag, Rows& rows);

}  // namespace brant::bench
