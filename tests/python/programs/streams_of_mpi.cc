// Calls that streams carry out, in whichever ABI of MPI the program is compiled for. Two ranks, with an emulated
// device; each prints "ok" or what is wrong.
#include <mpi.h>

#include <cstdio>

#include "brant/core/device.h"
#include "brant/core/runtime.h"
#include "brant/core/stream.h"
#include "brant/mpi/runtime.h"

static int rank, wrong;

static void check(bool good, const char* what) {
  if (good) return;
  ++wrong;
  std::printf("rank %d: wrong: %s\n", rank, what);
  std::fflush(stdout);
}

static void check_messages(brant::Stream& stream, MPI_Comm comm) {
  const int other = 1 - rank, given[3] = {rank, rank + 1, rank + 2};
  int got[4] = {-1, -1, -1, -1}, count = -1;
  MPI_Status status;
  status.MPI_ERROR = 12345;
  if (rank == 0) MPIX_Send_enqueue(given, 3, MPI_INT, other, 5, comm);
  check(MPIX_Recv_enqueue(got, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status) == MPI_SUCCESS, "a receive");
  if (rank == 1) MPIX_Send_enqueue(given, 3, MPI_INT, other, 5, comm);
  check(stream.synchronize() == brant::Status::ok, "the stream goes on");
  MPI_Get_count(&status, MPI_INT, &count);
  check(count == 3 && got[2] == other + 2 && got[3] == -1, "what was received");
  check(status.MPI_SOURCE == other && status.MPI_TAG == 5, "the envelope");
  check(status.MPI_ERROR == 12345, "a single call leaves MPI_ERROR alone");
}

static void check_requests(brant::Stream& stream, MPI_Comm comm) {
  const int other = 1 - rank, given = 70 + rank;
  int got = -1;
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[3];
  MPIX_Irecv_enqueue(&got, 1, MPI_INT, other, 6, comm, &requests[0]);
  MPIX_Isend_enqueue(&given, 1, MPI_INT, other, 6, comm, &requests[2]);
  check(requests[0] != MPI_REQUEST_NULL && requests[2] != MPI_REQUEST_NULL, "requests have handles");
  check(MPIX_Waitall_enqueue(3, requests, statuses) == MPI_SUCCESS, "a stream waits for all");
  check(requests[0] == MPI_REQUEST_NULL && requests[2] == MPI_REQUEST_NULL, "the handles are null");
  check(stream.synchronize() == brant::Status::ok && got == 70 + other, "what came");
  check(statuses[0].MPI_SOURCE == other && statuses[0].MPI_ERROR == MPI_SUCCESS, "a status of several");
  MPIX_Irecv_enqueue(&got, 1, MPI_INT, MPI_PROC_NULL, 6, comm, &requests[1]);
  check(MPIX_Wait_enqueue(&requests[1], &statuses[1]) == MPI_SUCCESS && requests[1] == MPI_REQUEST_NULL, "one of them");
  check(stream.synchronize() == brant::Status::ok && statuses[1].MPI_SOURCE == MPI_PROC_NULL, "nobody as a source");
}

static void check_errors(brant::Stream& stream, MPI_Comm comm) {
  const int given[2] = {1, 2};
  int got = 0, error_class = MPI_SUCCESS;
  MPI_Request sent, received;
  MPI_Status status;
  MPI_Isend(given, 2, MPI_INT, 1 - rank, 7, comm, &sent);
  MPIX_Irecv_enqueue(&got, 1, MPI_INT, 1 - rank, 7, comm, &received);
  MPIX_Waitall_enqueue(1, &received, &status);
  check(stream.synchronize() == brant::Status::ok, "a failure lets the stream go on");
  MPI_Error_class(status.MPI_ERROR, &error_class);
  check(error_class == MPI_ERR_TRUNCATE, "the error in the status");
  MPI_Error_class(MPI_Barrier(comm), &error_class);
  check(error_class == MPI_ERR_TRUNCATE, "the next call tells the error");
  check(MPI_Wait(&sent, MPI_STATUS_IGNORE) == MPI_SUCCESS, "the send is over");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  {
    brant::Stream stream = brant::mpi::runtime().device().create_stream();
    void* const native = stream.native();
    MPI_Info info;
    MPIX_Stream handle = MPIX_STREAM_NULL, found = MPIX_STREAM_NULL;
    MPI_Comm comm;
    MPI_Info_create(&info);
    MPI_Info_set(info, "type", "cudaStream_t");
    MPIX_Info_set_hex(info, "value", &native, sizeof native);
    check(MPIX_Stream_create(info, &handle) == MPI_SUCCESS && handle != MPIX_STREAM_NULL, "a stream is made");
    MPI_Info_free(&info);
    check(MPIX_Stream_comm_create(MPI_COMM_WORLD, handle, &comm) == MPI_SUCCESS, "a communicator is made");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    check(MPIX_Comm_get_stream(comm, 0, &found) == MPI_SUCCESS && found == handle, "the stream of a communicator");
    check(MPIX_Comm_get_stream(MPI_COMM_WORLD, 0, &found) == MPI_SUCCESS && found == MPIX_STREAM_NULL, "no stream");
    check_messages(stream, comm);
    check_requests(stream, comm);
    int sum = 0;
    const int mine = rank + 1;
    check(MPIX_Allreduce_enqueue(&mine, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS, "a collective");
    check(stream.synchronize() == brant::Status::ok && sum == 3, "the sum");
    check_errors(stream, comm);
    check(MPI_Comm_free(&comm) == MPI_SUCCESS, "the communicator is freed");
    check(MPIX_Stream_free(&handle) == MPI_SUCCESS && handle == MPIX_STREAM_NULL, "the stream is freed");
  }
  if (wrong == 0) std::printf("rank %d: ok\n", rank);
  MPI_Finalize();
  return wrong != 0;
}
