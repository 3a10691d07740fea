#include "models/mpi/composite_request.h"

namespace brant::mpi {

void CompositeRequest::begin_parts(std::size_t parts) noexcept {
  begin_as_whole();
  failed_ = nullptr;
  open_ = parts + 1;
}

void CompositeRequest::part_ended(Request& part) noexcept {
  if (part.outcome.error != MPI_SUCCESS && failed_ == nullptr) failed_ = &part;
  drop_one();
}

void CompositeRequest::drop_one() noexcept {
  if (--open_ == 0) end(conclude());
}

}  // namespace brant::mpi
