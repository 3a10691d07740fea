#include <memory>

#include "models/mpi/operations.h"
#include "models/mpi/windows/access.h"
#include "models/mpi/windows/synchronisation.h"
#include "models/mpi/windows/window_calls.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// What a call names at the target.
struct There {
  int rank;
  MPI_Aint displacement;
  MPI_Count count;
  MPI_Datatype type;
};

/// An access without a request. `body` gets the window and the target's data; of MPI_PROC_NULL nothing is done.
template <typename Body>
int access(const char* function, MPI_Win win, const There& there, const Body& body) noexcept {
  return on_window(function, win, [&](Window& w) {
    if (there.rank == MPI_PROC_NULL) return;
    require_rank(w.communicator, there.rank, "the target");
    require_access(w, there.rank, false);
    body(w, TargetData(w, there.rank, there.displacement, there.count, there.type));
  });
}

/// An access with a request, which `body` gets too.
template <typename Body>
int request_access(const char* function, MPI_Win win, const There& there, MPI_Request* place,
                   const Body& body) noexcept {
  return on_window(function, win, [&](Window& w) {
    require_place(static_cast<const void*>(place), "request");
    auto request = std::make_unique<WindowRequest>(w.rank, w.communicator);
    request->begin();
    if (there.rank == MPI_PROC_NULL) {
      request->outcome.source = MPI_PROC_NULL;
      request->end(MPI_SUCCESS);
    } else {
      require_rank(w.communicator, there.rank, "the target");
      require_access(w, there.rank, true);
      body(w, TargetData(w, there.rank, there.displacement, there.count, there.type), request.get());
    }
    if (checks() != nullptr) [[unlikely]]
      checks()->census.add(Census::Kind::request, static_cast<Request*>(request.get()));
    *place = handle_of<MPI_Request>(*static_cast<Request*>(request.release()));
  });
}

/// What a call names at its own end.
struct Here {
  const void* address;
  MPI_Count count;
  MPI_Datatype type;
};

void accumulate_to(Window& w, const Here& origin, MPI_Op op, const TargetData& there, WindowRequest* request) {
  const Op& how = operation_of(op);
  if (op == MPI_NO_OP) return combine(w, {.op = how}, there, request);
  const TypedBuffer source(origin.address, origin.count, origin.type);
  combine(w, {.op = how, .source = &source, .landing = nullptr}, there, request);
}

void fetch_and_accumulate(Window& w, const Here& origin, const Here& result, MPI_Op op, const TargetData& there,
                          WindowRequest* request) {
  const Op& how = operation_of(op);
  const TypedBuffer landing(result.address, result.count, result.type);
  if (op == MPI_NO_OP) return combine(w, {.op = how, .source = nullptr, .landing = &landing}, there, request);
  const TypedBuffer source(origin.address, origin.count, origin.type);
  combine(w, {.op = how, .source = &source, .landing = &landing}, there, request);
}

void require_predefined(MPI_Datatype type) {
  require(datatype_of(type).basic() != nullptr, MPI_ERR_TYPE, "the datatype {} is not predefined",
          datatype_of(type).name());
}

}  // namespace

int put(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
        MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win) noexcept {
  return access("MPI_Put", win, {target_rank, target_disp, target_count, target_datatype},
                [&](Window& w, const TargetData& there) {
                  mpi::put(w, TypedBuffer(origin_addr, origin_count, origin_datatype), there, nullptr);
                });
}

int rput(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
         MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win,
         MPI_Request* request) noexcept {
  return request_access("MPI_Rput", win, {target_rank, target_disp, target_count, target_datatype}, request,
                        [&](Window& w, const TargetData& there, WindowRequest* begun) {
                          mpi::put(w, TypedBuffer(origin_addr, origin_count, origin_datatype), there, begun);
                        });
}

int get(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win) noexcept {
  return access("MPI_Get", win, {target_rank, target_disp, target_count, target_datatype},
                [&](Window& w, const TargetData& there) {
                  mpi::get(w, TypedBuffer(origin_addr, origin_count, origin_datatype), there, nullptr);
                });
}

int rget(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
         MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) noexcept {
  return request_access("MPI_Rget", win, {target_rank, target_disp, target_count, target_datatype}, request,
                        [&](Window& w, const TargetData& there, WindowRequest* begun) {
                          mpi::get(w, TypedBuffer(origin_addr, origin_count, origin_datatype), there, begun);
                        });
}

int accumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op,
               MPI_Win win) noexcept {
  return access("MPI_Accumulate", win, {target_rank, target_disp, target_count, target_datatype},
                [&](Window& w, const TargetData& there) {
                  accumulate_to(w, {origin_addr, origin_count, origin_datatype}, op, there, nullptr);
                });
}

int raccumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
                MPI_Request* request) noexcept {
  return request_access("MPI_Raccumulate", win, {target_rank, target_disp, target_count, target_datatype}, request,
                        [&](Window& w, const TargetData& there, WindowRequest* begun) {
                          accumulate_to(w, {origin_addr, origin_count, origin_datatype}, op, there, begun);
                        });
}

int get_accumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, void* result_addr,
                   MPI_Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                   MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) noexcept {
  return access("MPI_Get_accumulate", win, {target_rank, target_disp, target_count, target_datatype},
                [&](Window& w, const TargetData& there) {
                  fetch_and_accumulate(w, {origin_addr, origin_count, origin_datatype},
                                       {result_addr, result_count, result_datatype}, op, there, nullptr);
                });
}

int rget_accumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, void* result_addr,
                    MPI_Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                    MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
                    MPI_Request* request) noexcept {
  return request_access("MPI_Rget_accumulate", win, {target_rank, target_disp, target_count, target_datatype}, request,
                        [&](Window& w, const TargetData& there, WindowRequest* begun) {
                          fetch_and_accumulate(w, {origin_addr, origin_count, origin_datatype},
                                               {result_addr, result_count, result_datatype}, op, there, begun);
                        });
}

int fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                 MPI_Aint target_disp, MPI_Op op, MPI_Win win) noexcept {
  return access("MPI_Fetch_and_op", win, {target_rank, target_disp, 1, datatype},
                [&](Window& w, const TargetData& there) {
                  require_predefined(datatype);
                  fetch_and_accumulate(w, {origin_addr, 1, datatype}, {result_addr, 1, datatype}, op, there, nullptr);
                });
}

int compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr, MPI_Datatype datatype,
                     int target_rank, MPI_Aint target_disp, MPI_Win win) noexcept {
  return access("MPI_Compare_and_swap", win, {target_rank, target_disp, 1, datatype},
                [&](Window& w, const TargetData& there) {
                  require_predefined(datatype);
                  swap_if_equal(w, TypedBuffer(origin_addr, 1, datatype), TypedBuffer(compare_addr, 1, datatype),
                                TypedBuffer(result_addr, 1, datatype), there);
                });
}

}  // namespace brant::mpi::api
