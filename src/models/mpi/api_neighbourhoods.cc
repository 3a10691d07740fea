#include <memory>

#include "models/mpi/blocks.h"
#include "models/mpi/calls.h"
#include "models/mpi/exchange.h"
#include "models/mpi/launch.h"
#include "mpi_generated/api.h"

/// Collectives of neighbourhoods: messages along the edges of a topology.
namespace brant::mpi::api {

namespace {

/// The same block goes to all destinations.
int gather_from_neighbours(const Launch& how, MPI_Comm comm, const Blocks& own, const Blocks& got) noexcept {
  return on_communicator(how.function, comm, [&](Communicator& c) {
    if (how.way != Launch::Way::run) require_place(static_cast<const void*>(how.request), "request");
    const Neighbourhood neighbourhood = neighbourhood_of(c);
    own.require_apart();
    auto exchange = std::make_unique<Exchange>(current_rank(), c);
    int block = 0;
    for (const auto& [rank, edge] : neighbourhood.sources) {
      if (rank != MPI_PROC_NULL) exchange->receive(got[block], rank, edge);
      ++block;
    }
    for (const auto& [rank, edge] : neighbourhood.destinations) {
      if (rank != MPI_PROC_NULL) exchange->send(own[0], rank, edge);
    }
    carry_out(how, std::move(exchange));
  });
}

int exchange_with_neighbours(const Launch& how, MPI_Comm comm, const Blocks& given, const Blocks& got) noexcept {
  return on_communicator(how.function, comm, [&](Communicator& c) {
    if (how.way != Launch::Way::run) require_place(static_cast<const void*>(how.request), "request");
    const Neighbourhood neighbourhood = neighbourhood_of(c);
    given.require_apart();
    auto exchange = std::make_unique<Exchange>(current_rank(), c);
    int block = 0;
    for (const auto& [rank, edge] : neighbourhood.sources) {
      if (rank != MPI_PROC_NULL) exchange->receive(got[block], rank, edge);
      ++block;
    }
    block = 0;
    for (const auto& [rank, edge] : neighbourhood.destinations) {
      if (rank != MPI_PROC_NULL) exchange->send(given[block], rank, edge);
      ++block;
    }
    carry_out(how, std::move(exchange));
  });
}

}  // namespace

int neighbor_allgather(const Launch& how, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                       void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) noexcept {
  return gather_from_neighbours(how, comm, {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype});
}

int neighbor_allgatherv(const Launch& how, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                        void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                        MPI_Comm comm) noexcept {
  return gather_from_neighbours(how, comm, {sendbuf, sendcount, sendtype}, {recvbuf, recvcounts, displs, recvtype});
}

int neighbor_alltoall(const Launch& how, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                      MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) noexcept {
  return exchange_with_neighbours(how, comm, {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype});
}

int neighbor_alltoallv(const Launch& how, const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                       MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                       MPI_Datatype recvtype, MPI_Comm comm) noexcept {
  return exchange_with_neighbours(how, comm, {sendbuf, sendcounts, sdispls, sendtype},
                                  {recvbuf, recvcounts, rdispls, recvtype});
}

int neighbor_alltoallw(const Launch& how, const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                       const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                       const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm) noexcept {
  return exchange_with_neighbours(how, comm, {sendbuf, sendcounts, sdispls, sendtypes},
                                  {recvbuf, recvcounts, rdispls, recvtypes});
}

}  // namespace brant::mpi::api
