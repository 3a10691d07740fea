#pragma once

#include "models/mpi/blocks.h"
#include "models/mpi/exchange.h"

/// Collectives between two groups: what the standard says of them, as messages of this rank. Roots are those of the
/// calls: MPI_ROOT, MPI_PROC_NULL, or a rank of the other group; others are MPI_ERR_ROOT. What a rank has for itself
/// alone is the first block of `own`. Nothing is in place: MPI_ERR_BUFFER.
namespace brant::mpi::between {

void broadcast(Exchange& exchange, const Blocks& data, int root);
void gather(Exchange& exchange, const Blocks& own, const Blocks& blocks, int root);
void scatter(Exchange& exchange, const Blocks& blocks, const Blocks& own, int root);
void allgather(Exchange& exchange, const Blocks& own, const Blocks& blocks);
void alltoall(Exchange& exchange, const Blocks& given, const Blocks& got);
void reduce(Exchange& exchange, const Blocks& source, const Blocks& landing, MPI_Op op, int root);
void allreduce(Exchange& exchange, const Blocks& source, const Blocks& landing, MPI_Op op);
/// `counts`: for each member of this group. The other group may divide as many elements otherwise, so each gets them
/// all.
void reduce_scatter(Exchange& exchange, const void* source, void* landing, const MPI_Count counts[], MPI_Datatype type,
                    MPI_Op op);
/// The same where all members of a group get as many: each gets its own.
void reduce_scatter_block(Exchange& exchange, const void* source, void* landing, MPI_Count count, MPI_Datatype type,
                          MPI_Op op);

}  // namespace brant::mpi::between
