#include "models/mpi/landings.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "models/mpi/process.h"

namespace brant::mpi {

void Landings::land(ReceiveRequest& request, am::Message& message) noexcept {
  const std::size_t bytes = request.outcome.bytes;
  if (bytes == 0 || host_accessible(request.landing.kind())) {
    request.landing.unpack(message.data, bytes);
    messenger_.release(message);
    return request.end(request.outcome.error);
  }
  request.message = &message;
  lane::DataOrigin* origin = lanes_.take_origin();
  if (origin != nullptr) origin->buffer = {message.data, bytes, MemoryKind::host};
  copy(request, origin);
}

void Landings::copy(ReceiveRequest& request, lane::DataOrigin* origin) noexcept {
  lane::DataPart* part = origin != nullptr ? lanes_.take_part() : nullptr;
  if (part == nullptr) {
    if (origin != nullptr) lanes_.release_one(*origin, Status::no_memory);
    if (request.message != nullptr) messenger_.release(*std::exchange(request.message, nullptr));
    return request.end(MPI_ERR_NO_MEM);
  }
  part->origin = origin;
  take_part(request, *part, request.outcome.bytes);
  if (origin->shape == nullptr) origin->buffer.bytes = part->bytes();
  const Status status = lanes_.copy(*part);
  if (status != Status::in_progress) settle(request, status);
}

void Landings::land(ReceiveRequest& request, lane::DataPart& fetched) noexcept {
  if (fetched.under_way) {
    fetched.owner = &request;
    fetched.ended = &Landings::on_fetched;
    request.part = &fetched;
    return;
  }
  if (fetched.status == Status::ok) return copy(request, early_data_.as_source(fetched));
  const int error = error_class_of(fetched.status);
  lanes_.give_back(fetched);
  request.end(error);
}

void Landings::on_fetched(lane::DataPart& part, Status status) noexcept {
  auto& request = *static_cast<ReceiveRequest*>(part.owner);
  part.status = status;
  part.under_way = false;
  request.part = nullptr;
  request.rank.process.transport().landings().land(request, part);
}

void Landings::land(ReceiveRequest& request, Rank from, const Consignment& consignment) noexcept {
  const auto bytes = static_cast<std::size_t>(consignment.bytes);
  lane::DataPart* part = lanes_.take_part();
  if (part == nullptr) {
    const lane::DataMeta meta{.bytes = bytes, .kind = consignment.kind};
    lanes_.swallow(from.value, consignment.number, &meta, 1);
    return request.end(MPI_ERR_NO_MEM);
  }
  part->from = from.value;
  part->number = consignment.number;
  take_part(request, *part, std::min(bytes, request.landing.bytes()));
  const Status status = lanes_.receive(*part, from.value, consignment.number);
  if (status != Status::in_progress) settle(request, status);
}

/// Where the data lands, and who is told. Without a landing of its own size, it ends as truncated.
void Landings::take_part(ReceiveRequest& request, lane::DataPart& part, std::size_t bytes) noexcept {
  const TypedBuffer& landing = request.landing;
  part.owner = &request;
  part.ended = &Landings::on_part_ended;
  request.part = &part;
  if (landing.contiguous()) {
    part.landing = {landing.data(), bytes, landing.kind()};
    part.memory = landing.memory();
    return;
  }
  try {
    if (!host_accessible(landing.kind())) {
      request.shape.emplace(landing.shape(bytes));
      part.shape = lanes_.keep(request.shape->shape());
      part.landing = landing.ground(*request.shape);
      if (part.shape != nullptr) return;
    } else {
      request.unpacked = std::make_unique<std::byte[]>(bytes + 1);
      part.landing = {request.unpacked.get(), bytes, MemoryKind::host};
      return;
    }
  } catch (const std::exception&) {
    request.outcome.error = MPI_ERR_NO_MEM;
  }
  part.landing = {landing.data(), 0, MemoryKind::host};
}

void Landings::on_part_ended(lane::DataPart& part, Status status) noexcept {
  auto& request = *static_cast<ReceiveRequest*>(part.owner);
  request.rank.process.transport().landings().settle(request, status);
}

void Landings::settle(ReceiveRequest& request, Status status) noexcept {
  if (status == Status::ok && request.unpacked != nullptr)
    request.landing.unpack(request.unpacked.get(), request.outcome.bytes);
  request.unpacked.reset();
  lanes_.give_back(*std::exchange(request.part, nullptr));
  request.shape.reset();
  if (request.message != nullptr) messenger_.release(*std::exchange(request.message, nullptr));
  request.end(request.outcome.error != MPI_SUCCESS ? request.outcome.error : error_class_of(status));
}

}  // namespace brant::mpi
