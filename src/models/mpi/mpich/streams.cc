#include <algorithm>
#include <cstddef>
#include <vector>

#include "models/mpi/enqueue/enqueue_calls.h"
#include "models/mpi/mpich/arguments.h"
#include "models/mpi/mpich/own_calls.h"
#include "mpi_generated/api.h"

namespace brant::mpi::mpich::own {

namespace {

/// When the stream has carried out the call, which is after it has returned.
void store_late(void* place, const Request::Outcome& outcome, bool with_error) noexcept {
  MPI_Status status{};
  mpi::store_status(&status, outcome);
  auto& foreign = *static_cast<Status*>(place);
  mpich::store_status(status, foreign);
  if (with_error) foreign.MPI_ERROR = code_to_mpich(outcome.error);
}

StatusPlace place_of(Status* status, bool with_error) noexcept {
  return {is_ignored(status) ? nullptr : status, &store_late, with_error};
}

}  // namespace

/// The program has the stream's handle from MPIX_Stream_create, and frees that one.
int x_comm_get_stream(int comm, int idx, int* stream) {
  MPIX_Stream found = MPIX_STREAM_NULL;
  const int outcome = api::x_comm_get_stream(to_abi<MPI_Comm>(comm), idx, stream != nullptr ? &found : nullptr);
  if (outcome != MPI_SUCCESS || stream == nullptr) return code_to_mpich(outcome);
  *stream = Lent<MPIX_Stream>(found).get();
  return code_to_mpich(outcome);
}

int x_recv_enqueue(void* buf, MPI_Count count, int datatype, int source, int tag, int comm, Status* status) {
  return code_to_mpich(api::recv_enqueue(buf, count, to_abi<MPI_Datatype>(datatype), rank_to_abi(source),
                                         tag_to_abi(tag), to_abi<MPI_Comm>(comm), place_of(status, false)));
}

int x_wait_enqueue(int* request, Status* status) {
  const StatusPlace place = place_of(status, false);
  return code_to_mpich(api::wait_enqueue("MPIX_Wait_enqueue", 1, ChangedRequests(request, 1), &place));
}

int x_waitall_enqueue(int count, int array_of_requests[], Status* array_of_statuses) {
  std::vector<StatusPlace> places;
  places.reserve(static_cast<std::size_t>(std::max(count, 0)));
  for (int i = 0; i < count; ++i)
    places.push_back(place_of(is_ignored(array_of_statuses) ? nullptr : &array_of_statuses[i], true));
  return code_to_mpich(
      api::wait_enqueue("MPIX_Waitall_enqueue", count, ChangedRequests(array_of_requests, count), places.data()));
}

}  // namespace brant::mpi::mpich::own
