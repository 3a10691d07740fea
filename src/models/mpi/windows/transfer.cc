#include "models/mpi/windows/transfer.h"

#include <utility>

#include "models/mpi/windows/window.h"

namespace brant::mpi {

WindowRequest::~WindowRequest() {
  if (transfer != nullptr) transfer->request = nullptr;
}

/// What has come may still be packed.
int WindowRequest::finish() noexcept {
  if (transfer != nullptr) {
    const int error = transfer->settle();
    if (outcome.error == MPI_SUCCESS) outcome.error = error;
  }
  return outcome.error;
}

Transfer::Transfer(Window& window_in, int target_in, const TypedBuffer* landing, WindowRequest* request_in) noexcept
    : window(window_in), target(target_in), request(request_in) {
  if (landing != nullptr) {
    landing_ = *landing;
    lands_ = true;
  }
  if (request != nullptr) request->transfer = this;
  window.under_way.push_back(*this);
  ++window.peer(target).under_way;
}

Transfer::~Transfer() {
  if (request != nullptr) request->transfer = nullptr;
  if (over_) {
    window.landed.remove(*this);
  } else {
    window.under_way.remove(*this);
    --window.peer(target).under_way;
  }
}

std::byte* Transfer::room() {
  if (landing_.contiguous() && host_accessible(landing_.kind())) return landing_.data();
  if (packed == nullptr) packed = std::make_unique<std::byte[]>(landing_.bytes());
  return packed.get();
}

void Transfer::end_piece(int error) noexcept {
  if (error_ == MPI_SUCCESS) error_ = error;
  if (--pieces_ == 0) end();
}

void Transfer::on_ended(void* self, const OpResult& result) noexcept {
  static_cast<Transfer*>(self)->end_piece(error_class_of(result.status));
}

/// The copy into memory of a device waits, which this must not.
void Transfer::end() noexcept {
  over_ = true;
  window.under_way.remove(*this);
  --window.peer(target).under_way;
  window.landed.push_back(*this);
  WindowRequest* const told = request;
  const bool settles_later = lands_ && packed != nullptr && error_ == MPI_SUCCESS && !host_accessible(landing_.kind());
  if (told == nullptr && error_ != MPI_SUCCESS && window.peer(target).error == MPI_SUCCESS)
    window.peer(target).error = error_;
  const int error = settles_later ? MPI_SUCCESS : settle();
  if (told != nullptr) told->end(error);
}

int Transfer::settle() noexcept {
  int error = error_;
  if (lands_ && packed != nullptr && error == MPI_SUCCESS) {
    try {
      landing_.unpack_any(packed.get(), landing_.bytes());
    } catch (const CallError& fault) {
      error = fault.error_class();
    } catch (const Error& fault) {
      error = error_class_of(fault.status());
    } catch (const std::bad_alloc&) {
      error = MPI_ERR_NO_MEM;
    }
  }
  delete this;
  return error;
}

}  // namespace brant::mpi
