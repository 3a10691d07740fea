#include <memory>

#include "models/mpi/calls.h"
#include "models/mpi/partitioned_receive.h"
#include "models/mpi/partitioned_send.h"
#include "models/mpi/posting.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

void require_partitions(int partitions) {
  require(partitions > 0, MPI_ERR_ARG, "a message of {} partitions is none: there must be at least one", partitions);
}

PartitionedSend& send_of(MPI_Request handle) {
  auto* send = dynamic_cast<PartitionedSend*>(find_request(handle));
  require(send != nullptr, MPI_ERR_REQUEST, "the request is none of MPI_Psend_init");
  return *send;
}

}  // namespace

int psend_init(const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
               MPI_Comm comm, MPI_Info, MPI_Request* request) noexcept {
  return on_communicator("MPI_Psend_init", comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(request), "request");
    require_destination(c, dest, tag);
    require_partitions(partitions);
    hand_out(std::make_unique<PartitionedSend>(current_rank(), c, buf, partitions, count, datatype, dest, tag), true,
             request);
  });
}

int precv_init(void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
               MPI_Info, MPI_Request* request) noexcept {
  return on_communicator("MPI_Precv_init", comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(request), "request");
    require(source != MPI_ANY_SOURCE && tag != MPI_ANY_TAG, MPI_ERR_ARG,
            "messages in partitions take no wildcards: both ends are named when they are made");
    require_source(c, source, tag);
    require_partitions(partitions);
    hand_out(std::make_unique<PartitionedReceive>(current_rank(), c, buf, partitions, count, datatype, source, tag),
             true, request);
  });
}

int pready(int partition, MPI_Request request) noexcept {
  return call("MPI_Pready", [&] { send_of(request).ready(partition); });
}

int pready_range(int partition_low, int partition_high, MPI_Request request) noexcept {
  return call("MPI_Pready_range", [&] {
    PartitionedSend& send = send_of(request);
    for (int p = partition_low; p <= partition_high; ++p) send.ready(p);
  });
}

int pready_list(int length, const int array_of_partitions[], MPI_Request request) noexcept {
  return call("MPI_Pready_list", [&] {
    PartitionedSend& send = send_of(request);
    for (int i = 0; i < length; ++i) send.ready(array_of_partitions[i]);
  });
}

int parrived(MPI_Request request, int partition, int* flag) noexcept {
  const Request* const known = object_of<Request>(request);
  return call("MPI_Parrived", known != nullptr ? known->communicator : nullptr, [&] {
    require_place(flag, "flag");
    *flag = 1;
    if (request == MPI_REQUEST_NULL) return;
    auto* receive = dynamic_cast<PartitionedReceive*>(find_request(request));
    require(receive != nullptr, MPI_ERR_REQUEST, "the request is none of MPI_Precv_init");
    if (receive->arrived(partition)) return;
    current_rank().progress();
    *flag = receive->arrived(partition) ? 1 : 0;
  });
}

}  // namespace brant::mpi::api
