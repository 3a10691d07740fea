#include "models/mpi/windows/synchronisation.h"
#include "models/mpi/windows/window_calls.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// The body gets the window, for a rank that is one of its members; MPI_PROC_NULL stands for nobody.
template <typename Body>
int on_member(const char* function, MPI_Win win, int rank, const Body& body) noexcept {
  return on_window(function, win, [&](Window& w) {
    if (rank == MPI_PROC_NULL) return;
    require_rank(w.communicator, rank, "the target");
    body(w);
  });
}

}  // namespace

int win_fence(int assert, MPI_Win win) noexcept {
  return on_window("MPI_Win_fence", win, [&](Window& w) { fence(w, assert); });
}

int win_post(MPI_Group group, int assert, MPI_Win win) noexcept {
  return on_window("MPI_Win_post", win, [&](Window& w) { post(w, members_of(group), assert); });
}

int win_start(MPI_Group group, int assert, MPI_Win win) noexcept {
  return on_window("MPI_Win_start", win, [&](Window& w) { mpi::start(w, members_of(group), assert); });
}

int win_complete(MPI_Win win) noexcept {
  return on_window("MPI_Win_complete", win, [](Window& w) { complete(w); });
}

int win_wait(MPI_Win win) noexcept {
  return on_window("MPI_Win_wait", win, [](Window& w) { wait_for_completions(w); });
}

int win_test(MPI_Win win, int* flag) noexcept {
  return on_window("MPI_Win_test", win, [&](Window& w) {
    require_place(flag, "flag");
    *flag = test_completions(w) ? 1 : 0;
  });
}

int win_lock(int lock_type, int rank, int assert, MPI_Win win) noexcept {
  return on_member("MPI_Win_lock", win, rank, [&](Window& w) {
    require(lock_type == MPI_LOCK_SHARED || lock_type == MPI_LOCK_EXCLUSIVE, MPI_ERR_LOCKTYPE,
            "{} is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE", lock_type);
    lock(w, rank, lock_type == MPI_LOCK_EXCLUSIVE, assert);
  });
}

int win_unlock(int rank, MPI_Win win) noexcept {
  return on_member("MPI_Win_unlock", win, rank, [&](Window& w) { unlock(w, rank); });
}

int win_lock_all(int assert, MPI_Win win) noexcept {
  return on_window("MPI_Win_lock_all", win, [&](Window& w) { lock_all(w, assert); });
}

int win_unlock_all(MPI_Win win) noexcept {
  return on_window("MPI_Win_unlock_all", win, [](Window& w) { unlock_all(w); });
}

int win_flush(int rank, MPI_Win win) noexcept {
  return on_member("MPI_Win_flush", win, rank, [&](Window& w) { flush(w, rank, FlushTo::target); });
}

int win_flush_local(int rank, MPI_Win win) noexcept {
  return on_member("MPI_Win_flush_local", win, rank, [&](Window& w) { flush(w, rank, FlushTo::here); });
}

int win_flush_all(MPI_Win win) noexcept {
  return on_window("MPI_Win_flush_all", win, [](Window& w) { flush_all(w, FlushTo::target); });
}

int win_flush_local_all(MPI_Win win) noexcept {
  return on_window("MPI_Win_flush_local_all", win, [](Window& w) { flush_all(w, FlushTo::here); });
}

int win_sync(MPI_Win win) noexcept {
  return on_window("MPI_Win_sync", win, [](Window& w) { sync(w); });
}

}  // namespace brant::mpi::api
