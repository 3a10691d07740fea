#include "models/mpi/between_groups.h"

#include "models/mpi/calls.h"
#include "models/mpi/collective_work.h"

namespace brant::mpi::between {

namespace {

int peers_of(const Exchange& exchange) noexcept { return exchange.communicator->peers().size(); }

void send_to_all(Exchange& exchange, const TypedBuffer& source) {
  for (int peer = 0; peer < peers_of(exchange); ++peer) exchange.send(source, peer);
}

}  // namespace

void broadcast(Exchange& exchange, const Blocks& data, int root) {
  require_root(*exchange.communicator, root);
  if (root == MPI_ROOT) return send_to_all(exchange, data[0]);
  if (root != MPI_PROC_NULL) exchange.receive(data[0], root);
}

void gather(Exchange& exchange, const Blocks& own, const Blocks& blocks, int root) {
  require_root(*exchange.communicator, root);
  if (root == MPI_ROOT) {
    for (int peer = 0; peer < peers_of(exchange); ++peer) exchange.receive(blocks[peer], peer);
  } else if (root != MPI_PROC_NULL) {
    own.require_apart();
    exchange.send(own[0], root);
  }
}

void scatter(Exchange& exchange, const Blocks& blocks, const Blocks& own, int root) {
  require_root(*exchange.communicator, root);
  if (root == MPI_ROOT) {
    for (int peer = 0; peer < peers_of(exchange); ++peer) exchange.send(blocks[peer], peer);
  } else if (root != MPI_PROC_NULL) {
    own.require_apart();
    exchange.receive(own[0], root);
  }
}

void allgather(Exchange& exchange, const Blocks& own, const Blocks& blocks) {
  own.require_apart();
  for (int peer = 0; peer < peers_of(exchange); ++peer) exchange.receive(blocks[peer], peer);
  send_to_all(exchange, own[0]);
}

void alltoall(Exchange& exchange, const Blocks& given, const Blocks& got) {
  given.require_apart();
  for (int peer = 0; peer < peers_of(exchange); ++peer) {
    exchange.receive(got[peer], peer);
    exchange.send(given[peer], peer);
  }
}

void reduce(Exchange& exchange, const Blocks& source, const Blocks& landing, MPI_Op op, int root) {
  require_root(*exchange.communicator, root);
  if (root == MPI_ROOT) return exchange.receive_combined(landing[0], op);
  if (root == MPI_PROC_NULL) return;
  source.require_apart();
  const TypedBuffer given = source[0];
  static_cast<void>(op_for(op, given.type()));
  exchange.send(given, root);
}

void allreduce(Exchange& exchange, const Blocks& source, const Blocks& landing, MPI_Op op) {
  source.require_apart();
  exchange.receive_combined(landing[0], op);
  send_to_all(exchange, source[0]);
}

void reduce_scatter(Exchange& exchange, const void* source, void* landing, const MPI_Count counts[], MPI_Datatype type,
                    MPI_Op op) {
  require(counts != nullptr, MPI_ERR_ARG, "the counts are null");
  const Communicator& c = *exchange.communicator;
  MPI_Count all = 0;
  MPI_Count before = 0;
  for (int i = 0; i < c.size(); ++i) {
    if (i == c.rank) before = all;
    require(counts[i] >= 0 && !__builtin_add_overflow(all, counts[i], &all), MPI_ERR_COUNT, "the count {} is wrong",
            counts[i]);
  }
  const Blocks given(source, all, type);
  given.require_apart();
  const MPI_Count own = counts[c.rank];
  exchange.receive_combined(TypedBuffer(landing, own, type), op, before, all - before - own);
  send_to_all(exchange, given[0]);
}

void reduce_scatter_block(Exchange& exchange, const void* source, void* landing, MPI_Count count, MPI_Datatype type,
                          MPI_Op op) {
  const TypedBuffer landing_block(landing, count, type);
  MPI_Count all = 0;
  const int peers = peers_of(exchange);
  require(!__builtin_mul_overflow(count, MPI_Count{exchange.communicator->size()}, &all) && all % peers == 0,
          MPI_ERR_COUNT, "{} elements for each of {} members are not as many for each of the {} of the other group",
          count, exchange.communicator->size(), peers);
  const Blocks given(source, all / peers, type);
  given.require_apart();
  exchange.receive_combined(landing_block, op);
  for (int peer = 0; peer < peers; ++peer) exchange.send(given[peer], peer);
}

}  // namespace brant::mpi::between
