#include <memory>
#include <vector>

#include "models/mpi/between_groups.h"
#include "models/mpi/calls.h"
#include "models/mpi/collective_work.h"
#include "models/mpi/launch.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// Carries out what `within` puts into a work for a communicator of one group, or `across` into an exchange of two.
template <typename Across, typename Within>
int collective(const Launch& how, MPI_Comm comm, CollectiveKind kind, Across&& across, Within&& within) noexcept {
  return on_communicator(how.function, comm, [&](Communicator& c) {
    if (how.way != Launch::Way::run) require_place(static_cast<const void*>(how.request), "request");
    if (c.between_groups()) {
      auto exchange = std::make_unique<Exchange>(current_rank(), c);
      across(*exchange);
      return carry_out(how, std::move(exchange));
    }
    auto work = std::make_unique<CollectiveWork>();
    work->call.kind = kind;
    within(c, *work);
    carry_out(how, c, std::move(work));
  });
}

/// What the standard does not have between two groups.
constexpr auto kOneGroupOnly = [](const Exchange& e) { require_one_group(*e.communicator); };

/// As many elements as all members have together.
TypedBuffer of_all(const Communicator& c, const void* address, MPI_Count count, MPI_Datatype type) {
  require(count >= 0, MPI_ERR_COUNT, "the count {} is negative", count);
  MPI_Count all = 0;
  require(!__builtin_mul_overflow(count, MPI_Count{c.size()}, &all), MPI_ERR_COUNT, "the count {} is too large", count);
  return {address, all, type};
}

std::vector<std::uint64_t> sizes(const std::vector<TypedBuffer>& list) {
  std::vector<std::uint64_t> bytes;
  bytes.reserve(list.size());
  for (const TypedBuffer& block : list) bytes.push_back(block.bytes());
  return bytes;
}

void exchange_blocks(CollectiveWork& work, bool in_place, std::vector<TypedBuffer> given,
                     std::vector<TypedBuffer> got) {
  work.call.uneven = true;
  if (!in_place) {
    work.in_block_bytes = sizes(given);
    work.give(std::move(given));
  }
  work.block_bytes = sizes(got);
  work.get(std::move(got));
}

}  // namespace

/// Of two groups, their common team carries it out.
int barrier(const Launch& how, MPI_Comm comm) noexcept {
  return on_communicator(how.function, comm, [&](Communicator& c) {
    if (how.way != Launch::Way::run) require_place(static_cast<const void*>(how.request), "request");
    auto work = std::make_unique<CollectiveWork>();
    work->call.kind = CollectiveKind::barrier;
    carry_out(how, c, std::move(work));
  });
}

int bcast(const Launch& how, void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) { between::broadcast(e, {buffer, count, datatype}, root); };
  return collective(how, comm, CollectiveKind::broadcast, across, [&](const Communicator& c, CollectiveWork& work) {
    require_root(c, root);
    const TypedBuffer both(buffer, count, datatype);
    work.call.root = root;
    work.say(datatype, count);
    if (c.rank == root) {
      work.give_and_get(both);
    } else {
      work.get(both);
    }
  });
}

int gather(const Launch& how, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
           MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) {
    between::gather(e, {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype}, root);
  };
  return collective(how, comm, CollectiveKind::gather, across, [&](const Communicator& c, CollectiveWork& work) {
    require_root(c, root);
    work.call.root = root;
    const bool in_place = c.rank == root && sendbuf == MPI_IN_PLACE;
    in_place ? work.say(recvtype, recvcount) : work.say(sendtype, sendcount);
    if (c.rank == root) {
      const TypedBuffer landing = of_all(c, recvbuf, recvcount, recvtype);
      in_place ? work.give_and_get(landing) : work.get(landing);
    }
    if (!in_place) work.give(TypedBuffer(sendbuf, sendcount, sendtype));
  });
}

int gatherv(const Launch& how, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
            const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
            MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) {
    between::gather(e, {sendbuf, sendcount, sendtype}, {recvbuf, recvcounts, displs, recvtype}, root);
  };
  return collective(how, comm, CollectiveKind::gather, across, [&](const Communicator& c, CollectiveWork& work) {
    require_root(c, root);
    work.call.root = root;
    work.call.uneven = true;
    if (c.rank == root) {
      std::vector<TypedBuffer> landing = Blocks(recvbuf, recvcounts, displs, recvtype).first(c.size());
      work.block_bytes = sizes(landing);
      work.get(std::move(landing));
    }
    if (c.rank != root || sendbuf != MPI_IN_PLACE) work.give(TypedBuffer(sendbuf, sendcount, sendtype));
  });
}

int scatter(const Launch& how, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
            MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) {
    between::scatter(e, {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype}, root);
  };
  return collective(how, comm, CollectiveKind::scatter, across, [&](const Communicator& c, CollectiveWork& work) {
    require_root(c, root);
    work.call.root = root;
    c.rank == root ? work.say(sendtype, sendcount) : work.say(recvtype, recvcount);
    if (c.rank == root) work.give(of_all(c, sendbuf, sendcount, sendtype));
    if (c.rank == root && recvbuf == MPI_IN_PLACE) {
      work.get_nothing(TypedBuffer(sendbuf, sendcount, sendtype).bytes());
    } else {
      work.get(TypedBuffer(recvbuf, recvcount, recvtype));
    }
  });
}

int scatterv(const Launch& how, const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
             MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
             MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) {
    between::scatter(e, {sendbuf, sendcounts, displs, sendtype}, {recvbuf, recvcount, recvtype}, root);
  };
  return collective(how, comm, CollectiveKind::scatter, across, [&](const Communicator& c, CollectiveWork& work) {
    require_root(c, root);
    work.call.root = root;
    work.call.uneven = true;
    if (c.rank == root) {
      std::vector<TypedBuffer> source = Blocks(sendbuf, sendcounts, displs, sendtype).first(c.size());
      work.in_block_bytes = sizes(source);
      work.give(std::move(source));
    }
    if (c.rank == root && recvbuf == MPI_IN_PLACE) {
      work.get_nothing(static_cast<std::size_t>(work.in_block_bytes[static_cast<std::size_t>(root)]));
    } else {
      work.get(TypedBuffer(recvbuf, recvcount, recvtype));
    }
  });
}

int allgather(const Launch& how, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
              MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) {
    between::allgather(e, {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype});
  };
  return collective(how, comm, CollectiveKind::allgather, across, [&](const Communicator& c, CollectiveWork& work) {
    const TypedBuffer landing = of_all(c, recvbuf, recvcount, recvtype);
    sendbuf == MPI_IN_PLACE ? work.say(recvtype, recvcount) : work.say(sendtype, sendcount);
    if (sendbuf == MPI_IN_PLACE) return work.give_and_get(landing);
    work.get(landing);
    work.give(TypedBuffer(sendbuf, sendcount, sendtype));
  });
}

int allgatherv(const Launch& how, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
               const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) {
    between::allgather(e, {sendbuf, sendcount, sendtype}, {recvbuf, recvcounts, displs, recvtype});
  };
  return collective(how, comm, CollectiveKind::allgather, across, [&](const Communicator& c, CollectiveWork& work) {
    std::vector<TypedBuffer> landing = Blocks(recvbuf, recvcounts, displs, recvtype).first(c.size());
    work.block_bytes = sizes(landing);
    work.get(std::move(landing));
    if (sendbuf != MPI_IN_PLACE) work.give(TypedBuffer(sendbuf, sendcount, sendtype));
  });
}

int alltoall(const Launch& how, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
             MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) {
    between::alltoall(e, {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype});
  };
  return collective(how, comm, CollectiveKind::alltoall, across, [&](const Communicator& c, CollectiveWork& work) {
    const TypedBuffer landing = of_all(c, recvbuf, recvcount, recvtype);
    sendbuf == MPI_IN_PLACE ? work.say(recvtype, recvcount) : work.say(sendtype, sendcount);
    if (sendbuf == MPI_IN_PLACE) return work.give_and_get(landing);
    work.get(landing);
    work.give(of_all(c, sendbuf, sendcount, sendtype));
  });
}

int alltoallv(const Launch& how, const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
              MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
              MPI_Datatype recvtype, MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) {
    between::alltoall(e, {sendbuf, sendcounts, sdispls, sendtype}, {recvbuf, recvcounts, rdispls, recvtype});
  };
  return collective(how, comm, CollectiveKind::alltoall, across, [&](const Communicator& c, CollectiveWork& work) {
    const bool in_place = sendbuf == MPI_IN_PLACE;
    std::vector<TypedBuffer> given;
    if (!in_place) given = Blocks(sendbuf, sendcounts, sdispls, sendtype).first(c.size());
    exchange_blocks(work, in_place, std::move(given), Blocks(recvbuf, recvcounts, rdispls, recvtype).first(c.size()));
  });
}

int alltoallw(const Launch& how, const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
              const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
              const MPI_Datatype recvtypes[], MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) {
    between::alltoall(e, {sendbuf, sendcounts, sdispls, sendtypes}, {recvbuf, recvcounts, rdispls, recvtypes});
  };
  return collective(how, comm, CollectiveKind::alltoall, across, [&](const Communicator& c, CollectiveWork& work) {
    const bool in_place = sendbuf == MPI_IN_PLACE;
    std::vector<TypedBuffer> given;
    if (!in_place) given = Blocks(sendbuf, sendcounts, sdispls, sendtypes).first(c.size());
    exchange_blocks(work, in_place, std::move(given), Blocks(recvbuf, recvcounts, rdispls, recvtypes).first(c.size()));
  });
}

// Reductions
// -------------------------------------------------------------------------------------------------------------------

namespace {

/// Each gives and gets as many elements as the others.
template <typename Across>
int reduce_same(const Launch& how, CollectiveKind kind, const void* sendbuf, void* recvbuf, MPI_Count count,
                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, const Across& across) noexcept {
  return collective(how, comm, kind, across, [&](const Communicator&, CollectiveWork& work) {
    const TypedBuffer landing(recvbuf, count, datatype);
    work.say(datatype, count);
    if (sendbuf == MPI_IN_PLACE) return work.combine(op, datatype, nullptr, &landing, true);
    const TypedBuffer source(sendbuf, count, datatype);
    work.combine(op, datatype, &source, &landing, false);
  });
}

}  // namespace

int reduce(const Launch& how, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
           int root, MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) {
    between::reduce(e, {sendbuf, count, datatype}, {recvbuf, count, datatype}, op, root);
  };
  return collective(how, comm, CollectiveKind::reduce, across, [&](const Communicator& c, CollectiveWork& work) {
    require_root(c, root);
    work.call.root = root;
    const bool in_place = c.rank == root && sendbuf == MPI_IN_PLACE;
    TypedBuffer source;
    TypedBuffer landing;
    if (!in_place) source = TypedBuffer(sendbuf, count, datatype);
    if (c.rank == root) landing = TypedBuffer(recvbuf, count, datatype);
    work.say(datatype, count);
    work.combine(op, datatype, in_place ? nullptr : &source, c.rank == root ? &landing : nullptr, in_place);
  });
}

int allreduce(const Launch& how, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
              MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) {
    between::allreduce(e, {sendbuf, count, datatype}, {recvbuf, count, datatype}, op);
  };
  return reduce_same(how, CollectiveKind::allreduce, sendbuf, recvbuf, count, datatype, op, comm, across);
}

int scan(const Launch& how, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
         MPI_Comm comm) noexcept {
  return reduce_same(how, CollectiveKind::scan, sendbuf, recvbuf, count, datatype, op, comm, kOneGroupOnly);
}

int exscan(const Launch& how, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
           MPI_Comm comm) noexcept {
  return reduce_same(how, CollectiveKind::exscan, sendbuf, recvbuf, count, datatype, op, comm, kOneGroupOnly);
}

namespace {

/// Of blocks of these counts each gets its own. In place, what it gives is where it gets, and its block comes first.
void scatter_reduced(const Communicator& c, CollectiveWork& work, const void* sendbuf, void* recvbuf,
                     const std::vector<MPI_Count>& counts, MPI_Datatype datatype, MPI_Op op) {
  MPI_Count all = 0;
  for (const MPI_Count count : counts) {
    require(count >= 0 && !__builtin_add_overflow(all, count, &all), MPI_ERR_COUNT, "the count {} is wrong", count);
  }
  const MPI_Count own = counts[static_cast<std::size_t>(c.rank)];
  const bool in_place = sendbuf == MPI_IN_PLACE;
  const TypedBuffer source(in_place ? recvbuf : sendbuf, all, datatype);
  const TypedBuffer landing(recvbuf, own, datatype);
  work.say(datatype, all);
  const auto element = [&]() -> std::uint64_t {
    const Datatype& type = datatype_of(datatype);
    return static_cast<std::uint64_t>(type.contiguous() ? type.size() : type.extent());
  }();
  for (const MPI_Count count : counts) work.in_block_bytes.push_back(static_cast<std::uint64_t>(count) * element);
  work.combine(op, datatype, &source, &landing, false);
  if (in_place) work.keep_apart();
}

}  // namespace

int reduce_scatter(const Launch& how, const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[],
                   MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) { between::reduce_scatter(e, sendbuf, recvbuf, recvcounts, datatype, op); };
  return collective(how, comm, CollectiveKind::reduce_scatter, across,
                    [&](const Communicator& c, CollectiveWork& work) {
                      require(recvcounts != nullptr, MPI_ERR_ARG, "the counts are null");
                      scatter_reduced(c, work, sendbuf, recvbuf, {recvcounts, recvcounts + c.size()}, datatype, op);
                    });
}

int reduce_scatter_block(const Launch& how, const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) noexcept {
  const auto across = [&](Exchange& e) { between::reduce_scatter_block(e, sendbuf, recvbuf, recvcount, datatype, op); };
  return collective(
      how, comm, CollectiveKind::reduce_scatter, across, [&](const Communicator& c, CollectiveWork& work) {
        scatter_reduced(c, work, sendbuf, recvbuf,
                        std::vector<MPI_Count>(static_cast<std::size_t>(c.size()), recvcount), datatype, op);
        work.in_block_bytes.clear();
      });
}

}  // namespace brant::mpi::api
