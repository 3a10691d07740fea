#include "models/mpi/duplicate_request.h"

#include <span>

#include "models/mpi/call_error.h"
#include "models/mpi/communicators.h"

namespace brant::mpi {

void DuplicateRequest::start() noexcept {
  begin();
  Status status = Status::ok;
  try {
    RankTeam& team = communicator->team();
    if (team.rank() == 0) context_ = hand_out_context(rank, *communicator);
    op_.delivered = {
        [](void* self, const OpResult& result) noexcept { static_cast<DuplicateRequest*>(self)->take(result.status); },
        this};
    status = team.post(broadcast(Buffer(std::span(&context_, 1)), 0), op_);
  } catch (const Error& error) {
    status = error.status();
  } catch (const CallError&) {
    status = Status::limit_reached;
  }
  if (status != Status::in_progress) take(status);
}

void DuplicateRequest::take(Status status) noexcept {
  copy_.context = context_;
  end(error_class_of(status));
}

}  // namespace brant::mpi
