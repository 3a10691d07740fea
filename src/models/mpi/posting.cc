#include "models/mpi/posting.h"

#include "models/mpi/calls.h"

namespace brant::mpi {

void require_destination(const Communicator& communicator, int destination, int tag) {
  if (destination != MPI_PROC_NULL) require_rank(communicator, destination, "the destination");
  require(tag >= 0, MPI_ERR_TAG, "the tag {} is outside 0 to {}", tag, kTagMax);
}

void require_source(const Communicator& communicator, int source, int tag) {
  if (source != MPI_PROC_NULL && source != MPI_ANY_SOURCE) require_rank(communicator, source, "the source");
  require(tag >= 0 || tag == MPI_ANY_TAG, MPI_ERR_TAG, "the tag {} is outside 0 to {}, and not MPI_ANY_TAG", tag,
          kTagMax);
}

namespace {

/// The buffer that messages on a communicator take: its own, that of its session, or that of the process.
BufferedSends& buffer_of(RankState& rank, Communicator& communicator) noexcept {
  if (communicator.buffered.attached()) return communicator.buffered;
  Session* const session = rank.sessions().find(communicator.session);
  return session != nullptr && session->buffered.attached() ? session->buffered : rank.buffered;
}

}  // namespace

void start_buffered(Communicator& communicator, const TypedBuffer& source, int destination, int tag) {
  RankState& rank = current_rank();
  const std::size_t bytes = source.bytes();
  BufferedSends& sends = buffer_of(rank, communicator);
  if (!sends.takes(bytes)) rank.progress();  // what has left meanwhile makes room
  require(sends.takes(bytes), MPI_ERR_BUFFER,
          "the buffer that is attached has no room for {} bytes and MPI_BSEND_OVERHEAD: {} of {} bytes are in use",
          bytes, sends.used(), sends.size());
  auto copy = std::make_unique<std::byte[]>(bytes + 1);
  source.pack_any(copy.get());
  auto request = std::make_unique<SendRequest>(rank, communicator, source.packed_at(copy.get()), destination, tag,
                                               SendMode::buffered);
  request->packed = std::move(copy);
  request->freed = true;
  request->buffered = &sends;
  request->buffered_number = sends.add(bytes);
  request.release()->start();
}

void BufferedRequest::start() noexcept {
  begin();
  try {
    start_buffered(*communicator, source_, destination_, tag_);
    end(MPI_SUCCESS);
  } catch (const CallError& error) {
    end(error.error_class());
  } catch (const std::bad_alloc&) {
    end(MPI_ERR_NO_MEM);
  }
}

void complete(Request& request) {
  request.rank.wait_for_end([&] { return request.ended(); });
  if (const int error = request.finish(); error != MPI_SUCCESS) [[unlikely]] {
    const auto& outcome = request.outcome;
    if (error == MPI_ERR_TRUNCATE) {
      fail(error, "a message from rank {} with tag {} is longer than the {} bytes that the receive has room for",
           outcome.source, outcome.tag, outcome.bytes);
    }
    if (const std::string fault = request.fault(); !fault.empty()) fail(error, "{}", fault);
    const char* why =
        error == MPI_ERR_PROC_ABORTED ? ": a rank that takes part in it, or its process, has died or ended" : "";
    fail(error, "{} ended with an error{}", request.text(), why);
  }
}

void hand_out(std::unique_ptr<Request> request, bool persistent, MPI_Request* place) {
  request->persistent = persistent;
  Request& made = *request.release();
  *place = handle_of<MPI_Request>(made);
  if (checks() != nullptr) [[unlikely]]
    checks()->census.add(Census::Kind::request, &made);
  if (!persistent) made.start();
}

}  // namespace brant::mpi
