#include <cstring>
#include <memory>

#include "models/mpi/calls.h"
#include "models/mpi/posting.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// Ends when the buffered messages that were under way at its start have left.
class FlushRequest final : public Request {
 public:
  FlushRequest(RankState& rank_in, Communicator* communicator_in, BufferedSends& sends) noexcept
      : Request(rank_in, communicator_in), sends_(sends) {}
  void start() noexcept override {
    begin();
    try {
      sends_.end_when_flushed(*this);
    } catch (const std::bad_alloc&) {
      end(MPI_ERR_NO_MEM);
    }
  }
  [[nodiscard]] std::string text() const override { return "buffered messages to leave"; }

 private:
  BufferedSends& sends_;
};

void attach(BufferedSends& sends, void* buffer, MPI_Count size) {
  require(!sends.attached(), MPI_ERR_BUFFER, "a buffer is attached already: it has to be detached before");
  require(size >= 0, MPI_ERR_ARG, "the size {} is negative", size);
  sends.attach(buffer, static_cast<std::size_t>(size));
}

void flush(BufferedSends& sends) {
  current_rank().wait([&] { return sends.empty(); });
}

void detach(BufferedSends& sends, void* buffer_addr, MPI_Count* size) {
  require_place(buffer_addr, "buffer_addr");
  flush(sends);
  void* const buffer = sends.buffer();
  std::memcpy(buffer_addr, static_cast<const void*>(&buffer), sizeof buffer);
  if (size != nullptr) *size = static_cast<MPI_Count>(sends.size());
  sends.detach();
}

void begin_flush(Communicator* communicator, BufferedSends& sends, MPI_Request* request) {
  require_place(static_cast<const void*>(request), "request");
  hand_out(std::make_unique<FlushRequest>(current_rank(), communicator, sends), false, request);
}

}  // namespace

int buffer_attach(void* buffer, MPI_Count size) noexcept {
  return call("MPI_Buffer_attach", [&] { attach(current_rank().buffered, buffer, size); });
}
int buffer_detach(void* buffer_addr, MPI_Count* size) noexcept {
  return call("MPI_Buffer_detach", [&] { detach(current_rank().buffered, buffer_addr, size); });
}
int buffer_flush() noexcept {
  return call("MPI_Buffer_flush", [] { flush(current_rank().buffered); });
}
int buffer_iflush(MPI_Request* request) noexcept {
  return call("MPI_Buffer_iflush", [&] { begin_flush(nullptr, current_rank().buffered, request); });
}

int comm_attach_buffer(MPI_Comm comm, void* buffer, MPI_Count size) noexcept {
  return on_communicator("MPI_Comm_attach_buffer", comm, [&](Communicator& c) { attach(c.buffered, buffer, size); });
}
int comm_detach_buffer(MPI_Comm comm, void* buffer_addr, MPI_Count* size) noexcept {
  return on_communicator("MPI_Comm_detach_buffer", comm,
                         [&](Communicator& c) { detach(c.buffered, buffer_addr, size); });
}
int comm_flush_buffer(MPI_Comm comm) noexcept {
  return on_communicator("MPI_Comm_flush_buffer", comm, [](Communicator& c) { flush(c.buffered); });
}
int comm_iflush_buffer(MPI_Comm comm, MPI_Request* request) noexcept {
  return on_communicator("MPI_Comm_iflush_buffer", comm,
                         [&](Communicator& c) { begin_flush(&c, c.buffered, request); });
}

int session_attach_buffer(MPI_Session session, void* buffer, MPI_Count size) noexcept {
  return on_session("MPI_Session_attach_buffer", session, [&](Session& s) { attach(s.buffered, buffer, size); });
}
int session_detach_buffer(MPI_Session session, void* buffer_addr, MPI_Count* size) noexcept {
  return on_session("MPI_Session_detach_buffer", session, [&](Session& s) { detach(s.buffered, buffer_addr, size); });
}
int session_flush_buffer(MPI_Session session) noexcept {
  return on_session("MPI_Session_flush_buffer", session, [](Session& s) { flush(s.buffered); });
}
int session_iflush_buffer(MPI_Session session, MPI_Request* request) noexcept {
  return on_session("MPI_Session_iflush_buffer", session,
                    [&](Session& s) { begin_flush(nullptr, s.buffered, request); });
}

}  // namespace brant::mpi::api
