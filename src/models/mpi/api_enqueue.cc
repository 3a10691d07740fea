#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/mpi/calls.h"
#include "models/mpi/checks/checks.h"
#include "models/mpi/communicators.h"
#include "models/mpi/enqueue/enqueue_calls.h"
#include "models/mpi/enqueue/enqueue_thread.h"
#include "models/mpi/enqueue/enqueued_call.h"
#include "models/mpi/launch.h"
#include "models/mpi/posting.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

// Streams
// -------------------------------------------------------------------------------------------------------------------

constexpr std::string_view kHexDigits = "0123456789abcdef";

/// The value of an address that MPIX_Info_set_hex has written: its bytes as they lie in memory.
std::optional<std::uintptr_t> address_of_hex(std::string_view text) noexcept {
  std::uintptr_t address = 0;
  if (text.size() != 2 * sizeof address) return std::nullopt;
  unsigned char bytes[sizeof address];
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    const std::size_t high = kHexDigits.find(text[2 * i]), low = kHexDigits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes[i] = static_cast<unsigned char>(high << 4 | low);
  }
  std::memcpy(&address, bytes, sizeof address);
  return address;
}

/// The stream of the device that an info object names. Throws MPI_ERR_INFO_NOKEY, MPI_ERR_INFO_VALUE.
port::Stream* stream_of(Info& info) {
  const Info::Entry* const type = info.find("type");
  require(type != nullptr, MPI_ERR_INFO_NOKEY,
          "the info object has no key type, which says of what sort the stream is: cudaStream_t is known");
  require(type->second == "cudaStream_t", MPI_ERR_INFO_VALUE,
          "the key type of the info object is {}: streams of that sort carry out no calls; cudaStream_t do",
          type->second);
  const Info::Entry* const value = info.find("value");
  require(
      value != nullptr, MPI_ERR_INFO_NOKEY,
      "the info object has no key value, which says which stream it is: MPIX_Info_set_hex(info, \"value\", &stream, "
      "sizeof stream) sets it");
  const std::optional<std::uintptr_t> address = address_of_hex(value->second);
  require(address.has_value(), MPI_ERR_INFO_VALUE,
          "the key value of the info object is '{}', and no handle of a stream in {} hexadecimal digits: "
          "MPIX_Info_set_hex(info, \"value\", &stream, sizeof stream) sets it",
          value->second, 2 * sizeof(void*));
  require(*address != 0, MPI_ERR_INFO_VALUE,
          "the stream is null, CUDA's default stream: make one by cudaStreamCreateWithFlags(&stream, "
          "cudaStreamNonBlocking)");
  return reinterpret_cast<port::Stream*>(*address);
}

void require_streams(const port::DeviceCapabilities& device) {
  require(
      device.streams && device.stream_words, MPI_ERR_UNSUPPORTED_OPERATION,
      "the device of this process ({}) has no streams that wait for words of memory: BRANT_GPU says which device it "
      "uses",
      device.name);
}

/// Throws MPI_ERR_ARG.
std::shared_ptr<MpiStream> open_stream_of(MPIX_Stream handle) {
  const auto* const object = object_of<MpiStream>(handle);
  const EnqueueThread* const thread = EnqueueThread::existing();
  std::shared_ptr<MpiStream> found = object != nullptr && thread != nullptr ? thread->find(object) : nullptr;
  require(found != nullptr, MPI_ERR_ARG, "the stream is MPIX_STREAM_NULL, or none that is open");
  return found;
}

/// Errors of calls that a communicator's handler has not got. Handlers may free communicators.
int tell_late_errors(MpiStream& stream) noexcept {
  int outcome = MPI_SUCCESS;
  for (;;) {
    const auto next = std::ranges::find_if(stream.communicators, [](const auto* one) { return one->late != nullptr; });
    if (next == stream.communicators.end()) return outcome;
    Communicator& communicator = **next;
    const std::unique_ptr<CallError> late = std::move(communicator.late);
    ++communicator.users;
    const int told = hand_over(&communicator, "MPIX_Stream_free", *late);
    drop_communicator(communicator);
    if (outcome == MPI_SUCCESS) outcome = told;
  }
}

// Calls
// -------------------------------------------------------------------------------------------------------------------

/// Where calls of a communicator are queued. Throws MPI_ERR_COMM.
StreamDoor& door_of(const Communicator& communicator) {
  require(communicator.stream != nullptr, MPI_ERR_COMM,
          "{} has no stream: MPIX_Stream_comm_create makes a communicator that has one", name_of(communicator));
  require(!communicator.stream->retired(), MPI_ERR_COMM, "the stream of {} was freed", name_of(communicator));
  require(communicator.stream->door != nullptr, MPI_ERR_COMM,
          "the stream of {} is none of a device, which carries out calls: give MPIX_Stream_create an info object with "
          "the keys type and value",
          name_of(communicator));
  return *communicator.stream->door;
}

/// The stream of a communicator carries out a request, and waits for its end.
void enqueue(Communicator& communicator, const char* function, std::unique_ptr<Request> request,
             const StatusPlace& status = {}) {
  StreamDoor& door = door_of(communicator);
  auto call = std::make_unique<EnqueuedCall>(current_rank(), communicator, function);
  call->add(std::move(request), status);
  call->freed = true;
  EnqueueThread::existing()->start();
  door.queue(std::move(call), true);
}

/// The stream begins it, and goes on; the program gets a handle.
void begin(Communicator& communicator, const char* function, std::unique_ptr<Request> request, MPI_Request* place) {
  StreamDoor& door = door_of(communicator);
  auto call = std::make_unique<EnqueuedCall>(current_rank(), communicator, function);
  call->add(std::move(request));
  EnqueueThread::existing()->start();
  EnqueuedCall& queued = *call;
  door.queue(std::move(call), false);
  if (checks() != nullptr) [[unlikely]]
    checks()->census.add(Census::Kind::request, &queued);
  *place = handle_of<MPI_Request>(queued);
}

std::unique_ptr<Request> send_of(Communicator& c, const void* buf, MPI_Count count, MPI_Datatype datatype, int dest,
                                 int tag) {
  static_cast<void>(door_of(c));
  require_destination(c, dest, tag);
  if (dest == MPI_PROC_NULL) return std::make_unique<EmptyRequest>(current_rank(), &c);
  const TypedBuffer source(buf, count, datatype);
  return std::make_unique<SendRequest>(current_rank(), c, source, dest, tag, SendMode::standard);
}

std::unique_ptr<Request> receive_of(Communicator& c, void* buf, MPI_Count count, MPI_Datatype datatype, int source,
                                    int tag) {
  static_cast<void>(door_of(c));
  require_source(c, source, tag);
  if (source == MPI_PROC_NULL) return std::make_unique<EmptyRequest>(current_rank(), &c);
  const TypedBuffer landing(buf, count, datatype);
  return std::make_unique<ReceiveRequest>(current_rank(), c, landing, source, tag);
}

/// A collective as its persistent form prepares it; the stream starts it once.
template <typename Prepare>
int enqueue_collective(const char* function, MPI_Comm comm, Prepare&& prepare) noexcept {
  return on_communicator(function, comm, [&](Communicator& c) {
    static_cast<void>(door_of(c));
    MPI_Request handle = MPI_REQUEST_NULL;
    if (const int outcome = prepare(Launch::prepare(function, &handle)); outcome != MPI_SUCCESS) return outcome;
    std::unique_ptr<Request> request(object_of<Request>(handle));
    request->persistent = false;
    enqueue(c, function, std::move(request));
    return kSuccess;
  });
}

/// Those that a stream begins, by their places in a list; null for MPI_REQUEST_NULL. Throws MPI_ERR_REQUEST.
std::vector<EnqueuedCall*> enqueued_of(int count, const MPI_Request handles[]) {
  require(count >= 0, MPI_ERR_COUNT, "the number of requests {} is negative", count);
  require(count == 0 || handles != nullptr, MPI_ERR_REQUEST, "the list of requests is null");
  std::vector<EnqueuedCall*> calls;
  const EnqueuedCall* first = nullptr;
  for (int i = 0; i < count; ++i) {
    auto* const call = dynamic_cast<EnqueuedCall*>(find_request(handles[i]));
    require(call != nullptr || handles[i] == MPI_REQUEST_NULL, MPI_ERR_REQUEST,
            "request {} of {} is none of MPIX_Isend_enqueue or MPIX_Irecv_enqueue: streams wait for those alone", i,
            count);
    if (first == nullptr) first = call;
    require(call == nullptr || call->door == first->door, MPI_ERR_REQUEST,
            "request {} of {} is of another stream than the first one: a stream waits for its own", i, count);
    require(call == nullptr || std::ranges::find(calls, call) == calls.end(), MPI_ERR_REQUEST,
            "request {} of {} is in the list before", i, count);
    calls.push_back(call);
  }
  return calls;
}

/// The communicator whose handler gets what is wrong with requests.
Communicator* communicator_of_first(int count, const MPI_Request handles[]) noexcept {
  for (int i = 0; i < count && handles != nullptr; ++i) {
    if (const Request* const request = object_of<Request>(handles[i]); request != nullptr) return request->communicator;
  }
  return nullptr;
}

}  // namespace

int x_info_set_hex(MPI_Info info, const char* key, const void* value, int value_size) noexcept {
  const bool given = value != nullptr && value_size > 0;
  return call_at_any_time("MPIX_Info_set_hex", [&] {
    require(given, MPI_ERR_INFO_VALUE, "the value of the info key is null, or has no size");
    std::string text;
    text.reserve(2 * static_cast<std::size_t>(value_size));
    const auto* const bytes = static_cast<const unsigned char*>(value);
    for (int i = 0; i < value_size; ++i) {
      text += kHexDigits[bytes[i] >> 4];
      text += kHexDigits[bytes[i] & 0xf];
    }
    return info_set(info, key, text.c_str());
  });
}

int x_stream_create(MPI_Info info, MPIX_Stream* stream) noexcept {
  return call("MPIX_Stream_create", [&] {
    require_place(static_cast<const void*>(stream), "stream");
    EnqueueThread& thread = EnqueueThread::of(*process());
    if (info == MPI_INFO_NULL || info_of(info).find("type") == nullptr) {
      *stream = handle_of<MPIX_Stream>(*thread.open_without_device());
      return;
    }
    port::Stream* const of_device = stream_of(info_of(info));
    require_streams(process()->engine().device().capabilities());
    *stream = handle_of<MPIX_Stream>(*thread.open(of_device));
  });
}

int x_stream_free(MPIX_Stream* stream) noexcept {
  return call("MPIX_Stream_free", [&] {
    require_place(static_cast<const void*>(stream), "stream");
    const std::shared_ptr<MpiStream> open = open_stream_of(*stream);
    EnqueueThread& thread = *EnqueueThread::existing();
    if (open->door != nullptr) thread.drain(*open->door);
    thread.close(open);
    *stream = MPIX_STREAM_NULL;
    return tell_late_errors(*open);
  });
}

int x_stream_comm_create(MPI_Comm comm, MPIX_Stream stream, MPI_Comm* newcomm) noexcept {
  return on_communicator("MPIX_Stream_comm_create", comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(newcomm), "newcomm");
    std::shared_ptr<MpiStream> open = stream != MPIX_STREAM_NULL ? open_stream_of(stream) : nullptr;
    std::unique_ptr<Communicator> made = make_alike(current_rank(), c);
    if (open != nullptr) open->communicators.push_back(made.get());
    made->stream = std::move(open);
    *newcomm = publish(std::move(made), c);
  });
}

int x_comm_get_stream(MPI_Comm comm, int idx, MPIX_Stream* stream) noexcept {
  return on_communicator("MPIX_Comm_get_stream", comm, [&](const Communicator& c) {
    require_place(static_cast<const void*>(stream), "stream");
    require(idx == 0, MPI_ERR_ARG, "{} has one stream at most, whose number is 0, and none with the number {}",
            name_of(c), idx);
    const bool is_open = c.stream != nullptr && !c.stream->retired();
    *stream = is_open ? handle_of<MPIX_Stream>(*c.stream) : MPIX_STREAM_NULL;
  });
}

int x_send_enqueue(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) noexcept {
  return on_communicator("MPIX_Send_enqueue", comm, [&](Communicator& c) {
    enqueue(c, "MPIX_Send_enqueue", send_of(c, buf, count, datatype, dest, tag));
  });
}

int recv_enqueue(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                 const StatusPlace& status) noexcept {
  return on_communicator("MPIX_Recv_enqueue", comm, [&](Communicator& c) {
    enqueue(c, "MPIX_Recv_enqueue", receive_of(c, buf, count, datatype, source, tag), status);
  });
}

int x_recv_enqueue(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                   MPI_Status* status) noexcept {
  return recv_enqueue(buf, count, datatype, source, tag, comm, place_of(status));
}

int x_isend_enqueue(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                    MPI_Request* request) noexcept {
  return on_communicator("MPIX_Isend_enqueue", comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(request), "request");
    begin(c, "MPIX_Isend_enqueue", send_of(c, buf, count, datatype, dest, tag), request);
  });
}

int x_irecv_enqueue(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                    MPI_Request* request) noexcept {
  return on_communicator("MPIX_Irecv_enqueue", comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(request), "request");
    begin(c, "MPIX_Irecv_enqueue", receive_of(c, buf, count, datatype, source, tag), request);
  });
}

int wait_enqueue(const char* function, int count, MPI_Request requests[], const StatusPlace* statuses) noexcept {
  Communicator* const communicator = communicator_of_first(count, requests);
  return call(function, communicator, [&] {
    const std::vector<EnqueuedCall*> calls = enqueued_of(count, requests);
    if (communicator == nullptr) {
      for (int i = 0; i < count; ++i) statuses[i].tell({});
      return;
    }
    StreamDoor& door = door_of(*communicator);
    auto waiting = std::make_unique<EnqueuedCall>(current_rank(), *communicator, function);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i] == nullptr) {
        statuses[i].tell({});
        continue;
      }
      waiting->add(std::unique_ptr<Request>(calls[i]), statuses[i]);
      requests[i] = MPI_REQUEST_NULL;
    }
    waiting->freed = true;
    door.queue(std::move(waiting), true);
  });
}

int x_wait_enqueue(MPI_Request* request, MPI_Status* status) noexcept {
  const StatusPlace place = place_of(status);
  return wait_enqueue("MPIX_Wait_enqueue", 1, request, &place);
}

int x_waitall_enqueue(int count, MPI_Request array_of_requests[], MPI_Status* array_of_statuses) noexcept {
  std::vector<StatusPlace> places;
  for (int i = 0; i < count; ++i) {
    places.push_back(array_of_statuses != MPI_STATUSES_IGNORE ? place_of(&array_of_statuses[i]) : StatusPlace{});
    places.back().with_error = true;
  }
  return wait_enqueue("MPIX_Waitall_enqueue", count, array_of_requests, places.data());
}

int x_barrier_enqueue(MPI_Comm comm) noexcept {
  return enqueue_collective("MPIX_Barrier_enqueue", comm, [&](const Launch& how) { return barrier(how, comm); });
}

int x_bcast_enqueue(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) noexcept {
  return enqueue_collective("MPIX_Bcast_enqueue", comm,
                            [&](const Launch& how) { return bcast(how, buffer, count, datatype, root, comm); });
}

int x_reduce_enqueue(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                     MPI_Comm comm) noexcept {
  return enqueue_collective("MPIX_Reduce_enqueue", comm, [&](const Launch& how) {
    return reduce(how, sendbuf, recvbuf, count, datatype, op, root, comm);
  });
}

int x_allreduce_enqueue(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                        MPI_Comm comm) noexcept {
  return enqueue_collective("MPIX_Allreduce_enqueue", comm, [&](const Launch& how) {
    return allreduce(how, sendbuf, recvbuf, count, datatype, op, comm);
  });
}

int x_allgather_enqueue(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) noexcept {
  return enqueue_collective("MPIX_Allgather_enqueue", comm, [&](const Launch& how) {
    return allgather(how, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
  });
}

}  // namespace brant::mpi::api
