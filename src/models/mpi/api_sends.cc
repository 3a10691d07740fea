#include <memory>

#include "models/mpi/calls.h"
#include "models/mpi/posting.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// A small message of these modes needs no record, where it can leave within the call.
bool may_leave_at_once(SendMode mode, const TypedBuffer& source) noexcept {
  return (mode == SendMode::standard || mode == SendMode::ready) && source.bytes() <= Transport::kEagerMax;
}

bool leaves_at_once(SendMode mode, const Communicator& c, const TypedBuffer& source, int dest, int tag) noexcept {
  return may_leave_at_once(mode, source) && process()->transport().send_small(c, source, dest, tag);
}

/// A request of what has left; null: it has not.
std::unique_ptr<Request> begin_at_once(SendMode mode, Communicator& c, const TypedBuffer& source, int dest, int tag) {
  if (!may_leave_at_once(mode, source)) return nullptr;
  auto request = std::make_unique<LeftRequest>(current_rank(), c);  // first: without memory nothing leaves
  if (!process()->transport().send_small(c, source, dest, tag)) return nullptr;
  return request;
}

int send_now(const char* function, SendMode mode, const void* buf, MPI_Count count, MPI_Datatype datatype, int dest,
             int tag, MPI_Comm comm) noexcept {
  return on_communicator(function, comm, [&](Communicator& c) {
    require_destination(c, dest, tag);
    if (dest == MPI_PROC_NULL) return;
    const TypedBuffer source(buf, count, datatype);
    if (leaves_at_once(mode, c, source, dest, tag)) return;
    if (mode == SendMode::buffered) return start_buffered(c, source, dest, tag);
    SendRequest request(current_rank(), c, source, dest, tag, mode);
    request.start();
    complete(request);
  });
}

int begin_send(const char* function, SendMode mode, bool persistent, const void* buf, MPI_Count count,
               MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* place) noexcept {
  return on_communicator(function, comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(place), "request");
    require_destination(c, dest, tag);
    if (dest == MPI_PROC_NULL) return hand_out(std::make_unique<EmptyRequest>(current_rank(), &c), persistent, place);
    const TypedBuffer source(buf, count, datatype);
    std::unique_ptr<Request> request = persistent ? nullptr : begin_at_once(mode, c, source, dest, tag);
    if (request == nullptr && mode == SendMode::buffered) {
      request = std::make_unique<BufferedRequest>(current_rank(), c, source, dest, tag);
    } else if (request == nullptr) {
      request = std::make_unique<SendRequest>(current_rank(), c, source, dest, tag, mode);
    }
    hand_out(std::move(request), persistent, place);
  });
}

}  // namespace

int send(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) noexcept {
  return send_now("MPI_Send", SendMode::standard, buf, count, datatype, dest, tag, comm);
}
int ssend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) noexcept {
  return send_now("MPI_Ssend", SendMode::synchronous, buf, count, datatype, dest, tag, comm);
}
int rsend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) noexcept {
  return send_now("MPI_Rsend", SendMode::ready, buf, count, datatype, dest, tag, comm);
}
int bsend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) noexcept {
  return send_now("MPI_Bsend", SendMode::buffered, buf, count, datatype, dest, tag, comm);
}

int isend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
          MPI_Request* request) noexcept {
  return begin_send("MPI_Isend", SendMode::standard, false, buf, count, datatype, dest, tag, comm, request);
}
int issend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
           MPI_Request* request) noexcept {
  return begin_send("MPI_Issend", SendMode::synchronous, false, buf, count, datatype, dest, tag, comm, request);
}
int irsend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
           MPI_Request* request) noexcept {
  return begin_send("MPI_Irsend", SendMode::ready, false, buf, count, datatype, dest, tag, comm, request);
}
int ibsend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
           MPI_Request* request) noexcept {
  return begin_send("MPI_Ibsend", SendMode::buffered, false, buf, count, datatype, dest, tag, comm, request);
}

int send_init(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
              MPI_Request* request) noexcept {
  return begin_send("MPI_Send_init", SendMode::standard, true, buf, count, datatype, dest, tag, comm, request);
}
int ssend_init(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) noexcept {
  return begin_send("MPI_Ssend_init", SendMode::synchronous, true, buf, count, datatype, dest, tag, comm, request);
}
int rsend_init(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) noexcept {
  return begin_send("MPI_Rsend_init", SendMode::ready, true, buf, count, datatype, dest, tag, comm, request);
}
int bsend_init(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) noexcept {
  return begin_send("MPI_Bsend_init", SendMode::buffered, true, buf, count, datatype, dest, tag, comm, request);
}

}  // namespace brant::mpi::api
