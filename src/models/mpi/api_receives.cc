#include <memory>

#include "models/mpi/calls.h"
#include "models/mpi/posting.h"
#include "models/mpi/sendrecv_request.h"
#include "models/mpi/statuses.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// What a receive from nobody gives.
void store_nobody(MPI_Status* status) noexcept { store_status(status, {.source = MPI_PROC_NULL}); }

Request::Outcome outcome_of(const am::Message& message) noexcept {
  const auto envelope = message.header<Envelope>();
  return {.source = envelope.source, .tag = envelope.tag, .bytes = data_bytes(message)};
}

/// Waits for a receive of a blocking call, and tells its status even where it failed.
void complete_receive(ReceiveRequest& request, MPI_Status* status) {
  current_rank().wait_for_end([&] { return request.ended(); });
  store_status(status, request.outcome);
  complete(request);
}

int begin_receive(const char* function, bool persistent, void* buf, MPI_Count count, MPI_Datatype datatype, int source,
                  int tag, MPI_Comm comm, MPI_Request* place) noexcept {
  return on_communicator(function, comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(place), "request");
    require_source(c, source, tag);
    if (source == MPI_PROC_NULL) return hand_out(std::make_unique<EmptyRequest>(current_rank(), &c), persistent, place);
    const TypedBuffer landing(buf, count, datatype);
    hand_out(std::make_unique<ReceiveRequest>(current_rank(), c, landing, source, tag), persistent, place);
  });
}

/// Nobody looks at a buffer that goes to nobody, or comes from nobody.
TypedBuffer buffer_with(int rank, const void* address, MPI_Count count, MPI_Datatype type) {
  return rank == MPI_PROC_NULL ? TypedBuffer() : TypedBuffer(address, count, type);
}

void exchange(Communicator& c, const TypedBuffer& sent, int dest, int sendtag, const TypedBuffer& landing, int source,
              int recvtag, MPI_Status* status) {
  require_destination(c, dest, sendtag);
  require_source(c, source, recvtag);
  RankState& rank = current_rank();
  ReceiveRequest receive(rank, c, landing, source, recvtag);
  if (source != MPI_PROC_NULL) receive.start();
  if (dest != MPI_PROC_NULL) {
    SendRequest send(rank, c, sent, dest, sendtag, SendMode::standard);
    send.start();
    rank.wait_for_end([&] { return send.ended() && receive.ready(); });
    complete(send);
  }
  if (source == MPI_PROC_NULL) return store_nobody(status);
  complete_receive(receive, status);
}

void begin_exchange(Communicator& c, const TypedBuffer& sent, std::unique_ptr<std::byte[]> copy, int dest, int sendtag,
                    const TypedBuffer& landing, int source, int recvtag, MPI_Request* place) {
  require_place(static_cast<const void*>(place), "request");
  require_destination(c, dest, sendtag);
  require_source(c, source, recvtag);
  auto request = std::make_unique<SendrecvRequest>(current_rank(), c);
  if (dest != MPI_PROC_NULL) request->set_send(sent, dest, sendtag, std::move(copy));
  if (source != MPI_PROC_NULL) request->set_receive(landing, source, recvtag);
  hand_out(std::move(request), false, place);
}

/// A message that a matched probe took out goes to its receive.
std::unique_ptr<ReceiveRequest> receive_matched(MPI_Message* handle, void* buf, MPI_Count count,
                                                MPI_Datatype datatype) {
  auto* matched = object_of<MatchedMessage>(*handle);
  require(matched != nullptr, MPI_ERR_REQUEST, "the message is MPI_MESSAGE_NULL, or none that exists");
  const TypedBuffer landing(buf, count, datatype);
  const auto key = matched->message->header<Envelope>().key();
  auto request = std::make_unique<ReceiveRequest>(current_rank(), matched->communicator, landing, key.source, key.tag);
  am::Message& message = *matched->message;
  Communicator& communicator = matched->communicator;
  delete matched;
  *handle = MPI_MESSAGE_NULL;
  request->begin();
  process()->transport().receive(*request, message);
  drop_communicator(communicator);
  return request;
}

/// Looks once, or until there is a message.
template <typename Look>
auto look(const Communicator& communicator, int source, bool waits, Look&& find) {
  RankState& rank = current_rank();
  const Transport& transport = rank.process.transport();
  auto* found = find();
  if (found == nullptr && !waits) {
    rank.progress();
    found = find();
  }
  const std::size_t losses = transport.losses();
  // Who waits for anybody is told of each loss, as by a receive.
  const auto is_over = [&] {
    return transport.is_hopeless(communicator, source) || (source == MPI_ANY_SOURCE && transport.losses() != losses);
  };
  if (found == nullptr && waits) rank.wait([&] { return (found = find()) != nullptr || is_over(); });
  if (found == nullptr && is_over()) [[unlikely]]
    fail(MPI_ERR_PROC_ABORTED, "a rank that is probed for, or its process, has died");
  return found;
}

int probe(const char* function, bool waits, int source, int tag, MPI_Comm comm, int* flag,
          MPI_Status* status) noexcept {
  return on_communicator(function, comm, [&](Communicator& c) {
    require_source(c, source, tag);
    if (flag != nullptr) *flag = 1;
    if (source == MPI_PROC_NULL) return store_nobody(status);
    const MatchKey wanted{c.context, source, tag};
    const am::Message* message =
        look(c, source, waits, [&] { return process()->transport().look_for(current_rank(), wanted); });
    if (flag != nullptr) *flag = message != nullptr ? 1 : 0;
    if (message != nullptr) store_status(status, outcome_of(*message));
  });
}

int probe_matched(const char* function, bool waits, int source, int tag, MPI_Comm comm, int* flag, MPI_Message* place,
                  MPI_Status* status) noexcept {
  return on_communicator(function, comm, [&](Communicator& c) {
    require_source(c, source, tag);
    require_place(static_cast<const void*>(place), "message");
    if (flag != nullptr) *flag = 1;
    *place = MPI_MESSAGE_NO_PROC;
    if (source == MPI_PROC_NULL) return store_nobody(status);
    const MatchKey wanted{c.context, source, tag};
    am::Message* message =
        look(c, source, waits, [&] { return process()->transport().take_out(current_rank(), wanted); });
    *place = MPI_MESSAGE_NULL;
    if (flag != nullptr) *flag = message != nullptr ? 1 : 0;
    if (message == nullptr) return;
    store_status(status, outcome_of(*message));
    *place = handle_of<MPI_Message>(*std::make_unique<MatchedMessage>(c, *message).release());
    ++c.users;
  });
}

}  // namespace

int recv(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
         MPI_Status* status) noexcept {
  return on_communicator("MPI_Recv", comm, [&](Communicator& c) {
    require_source(c, source, tag);
    if (source == MPI_PROC_NULL) return store_nobody(status);
    const TypedBuffer landing(buf, count, datatype);
    ReceiveRequest request(current_rank(), c, landing, source, tag);
    request.start();
    complete_receive(request, status);
  });
}

int irecv(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
          MPI_Request* request) noexcept {
  return begin_receive("MPI_Irecv", false, buf, count, datatype, source, tag, comm, request);
}

int recv_init(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request* request) noexcept {
  return begin_receive("MPI_Recv_init", true, buf, count, datatype, source, tag, comm, request);
}

int sendrecv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
             MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
             MPI_Status* status) noexcept {
  return on_communicator("MPI_Sendrecv", comm, [&](Communicator& c) {
    exchange(c, buffer_with(dest, sendbuf, sendcount, sendtype), dest, sendtag,
             buffer_with(source, recvbuf, recvcount, recvtype), source, recvtag, status);
  });
}

int sendrecv_replace(void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
                     MPI_Comm comm, MPI_Status* status) noexcept {
  return on_communicator("MPI_Sendrecv_replace", comm, [&](Communicator& c) {
    const TypedBuffer both(buf, count, datatype);
    const auto copy = std::make_unique<std::byte[]>(both.bytes() + 1);
    both.pack_any(copy.get());
    exchange(c, both.packed_at(copy.get()), dest, sendtag, both, source, recvtag, status);
  });
}

int isendrecv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
              MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
              MPI_Request* request) noexcept {
  return on_communicator("MPI_Isendrecv", comm, [&](Communicator& c) {
    begin_exchange(c, buffer_with(dest, sendbuf, sendcount, sendtype), nullptr, dest, sendtag,
                   buffer_with(source, recvbuf, recvcount, recvtype), source, recvtag, request);
  });
}

int isendrecv_replace(void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
                      MPI_Comm comm, MPI_Request* request) noexcept {
  return on_communicator("MPI_Isendrecv_replace", comm, [&](Communicator& c) {
    const TypedBuffer both(buf, count, datatype);
    auto copy = std::make_unique<std::byte[]>(both.bytes() + 1);
    both.pack_any(copy.get());
    const TypedBuffer sent = both.packed_at(copy.get());
    begin_exchange(c, sent, std::move(copy), dest, sendtag, both, source, recvtag, request);
  });
}

int probe(int source, int tag, MPI_Comm comm, MPI_Status* status) noexcept {
  return probe("MPI_Probe", true, source, tag, comm, nullptr, status);
}

int iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) noexcept {
  return probe("MPI_Iprobe", false, source, tag, comm, flag, status);
}

int mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) noexcept {
  return probe_matched("MPI_Mprobe", true, source, tag, comm, nullptr, message, status);
}

int improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) noexcept {
  return probe_matched("MPI_Improbe", false, source, tag, comm, flag, message, status);
}

int mrecv(void* buf, MPI_Count count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) noexcept {
  return call("MPI_Mrecv", [&] {
    require_place(static_cast<const void*>(message), "message");
    if (*message == MPI_MESSAGE_NO_PROC) {
      *message = MPI_MESSAGE_NULL;
      return store_nobody(status);
    }
    complete_receive(*receive_matched(message, buf, count, type), status);
  });
}

int imrecv(void* buf, MPI_Count count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) noexcept {
  return call("MPI_Imrecv", [&] {
    require_place(static_cast<const void*>(message), "message");
    require_place(static_cast<const void*>(request), "request");
    if (*message == MPI_MESSAGE_NO_PROC) {
      *message = MPI_MESSAGE_NULL;
      return hand_out(std::make_unique<EmptyRequest>(current_rank(), nullptr), false, request);
    }
    Request& receive = *receive_matched(message, buf, count, type).release();
    *request = handle_of<MPI_Request>(receive);
    if (checks() != nullptr) [[unlikely]]
      checks()->census.add(Census::Kind::request, &receive);
  });
}

}  // namespace brant::mpi::api
