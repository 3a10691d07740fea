#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/mpi/windows/window.h"

namespace brant::mpi {

// When accesses to a window are allowed, and when they have been made. What is called in another order than the
// standard's throws MPI_ERR_RMA_SYNC; a member that has died, MPI_ERR_PROC_ABORTED.

/// An access to a member is allowed now. `passive`: only under a lock, as for MPI_Rput.
void require_access(Window& window, int member, bool passive);

void fence(Window& window, int assertion);

void post(Window& window, const Members& origins, int assertion);
void start(Window& window, const Members& targets, int assertion);
void complete(Window& window);
void wait_for_completions(Window& window);
/// The same without waiting: false if somebody has not called MPI_Win_complete.
[[nodiscard]] bool test_completions(Window& window);

void lock(Window& window, int member, bool exclusive, int assertion);
void unlock(Window& window, int member);
void lock_all(Window& window, int assertion);
void unlock_all(Window& window);

/// How far accesses are waited for: until they have landed here and their sources are free, or have been made there
/// too.
enum class FlushTo : std::uint8_t { here, target };
void flush(Window& window, int member, FlushTo to);
void flush_all(Window& window, FlushTo to);
/// Memory is the same for all here. So it only lets others go on.
void sync(Window& window);

/// Waits until all accesses of this rank have been made, and all members have heard what it said to them. Throws the
/// first error of any.
void flush_words(Window& window);

}  // namespace brant::mpi
