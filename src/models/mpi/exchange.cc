#include "models/mpi/exchange.h"

#include <utility>

#include <fmt/format.h>

#include "models/mpi/call_error.h"
#include "models/mpi/collective_work.h"
#include "models/mpi/posting.h"
#include "models/mpi/process.h"
#include "models/mpi/types/pack.h"
#include "models/mpi/types/reduce.h"

namespace brant::mpi {

Exchange::~Exchange() {
  if (combining_.op != nullptr) combining_.op->release();
}

void Exchange::send(const TypedBuffer& source, int destination, int edge) {
  if (destination == MPI_PROC_NULL) return;
  auto part = std::make_unique<SendRequest>(rank, *communicator, source, destination, edge, SendMode::standard);
  part->context = communicator->own_context();
  part->whole = this;
  sends_.push_back(std::move(part));
}

void Exchange::receive(const TypedBuffer& landing, int source, int edge) {
  if (source == MPI_PROC_NULL) return;
  auto part = std::make_unique<ReceiveRequest>(rank, *communicator, landing, source, edge);
  part->wanted.context = communicator->own_context();
  part->whole = this;
  receives_.push_back(std::move(part));
}

void Exchange::receive_combined(const TypedBuffer& landing, MPI_Op op, MPI_Count before, MPI_Count behind) {
  const Datatype& type = landing.type();
  combining_.op = &op_for(op, type);
  combining_.op->retain();
  const bool within = type.true_lb() >= 0 && type.true_lb() + type.true_extent() <= type.extent();
  require(type.contiguous() || within, MPI_ERR_UNSUPPORTED_OPERATION,
          "elements of the datatype {} cannot be combined between two groups: they do not lie within their extent",
          type.name());
  combining_.landing = landing;
  combining_.before_bytes = static_cast<std::size_t>(type.bytes_of(before));
  const Count bytes = type.bytes_of(before + landing.count() + behind);
  require(bytes >= 0, MPI_ERR_COUNT, "the elements of all members together are more than memory has");
  for (int peer = 0; peer < communicator->peers().size(); ++peer) {
    combining_.packed.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes) + 1));
    receive(TypedBuffer(combining_.packed.back().get(), bytes, MPI_BYTE), peer);
  }
}

/// Each is combined with all before it.
void Exchange::combine() {
  const TypedBuffer& landing = combining_.landing;
  const Datatype& type = landing.type();
  if (landing.bytes() == 0) return;
  std::vector<std::unique_ptr<std::byte[]>> images;  // of types with gaps: as the operation takes them
  const std::byte* combined = nullptr;
  for (const auto& packed : combining_.packed) {
    std::byte* next = packed.get() + combining_.before_bytes;
    if (!landing.contiguous()) {
      images.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(landing.count() * type.extent())));
      unpack({next, landing.bytes()}, 0, images.back().get(), landing.count(), type);
      next = images.back().get();
    }
    if (combined != nullptr) reduce_local(*combining_.op, combined, next, landing.count(), type);
    combined = next;
  }
  if (landing.contiguous()) return landing.unpack_any(combined, landing.bytes());
  const auto result = std::make_unique<std::byte[]>(landing.bytes());
  pack(combined, landing.count(), type, 0, {result.get(), landing.bytes()});
  landing.unpack_any(result.get(), landing.bytes());
}

void Exchange::start() noexcept {
  begin_parts(receives_.size() + sends_.size());
  for (const auto& part : receives_) part->start();
  for (const auto& part : sends_) part->start();
  drop_one();
}

int Exchange::conclude() noexcept {
  if (failed() != nullptr) outcome.bytes = failed()->outcome.bytes;
  return first_error();
}

int Exchange::finish() noexcept {
  if (outcome.error != MPI_SUCCESS || combining_.op == nullptr || std::exchange(finished_, true)) return outcome.error;
  try {
    combine();
  } catch (const Error& error) {
    outcome.error = error_class_of(error.status());
  } catch (const std::bad_alloc&) {
    outcome.error = MPI_ERR_NO_MEM;
  }
  return outcome.error;
}

std::string Exchange::text() const {
  return fmt::format("a collective of {} messages, of which {} are under way", sends_.size() + receives_.size(),
                     open());
}

std::string Exchange::fault() const {
  const char* why = error_class_text(outcome.error);
  return fmt::format("{}: {}", failed() != nullptr ? failed()->text() : "combining what the others gave",
                     why != nullptr ? why : "it failed");
}

void carry_out(const Launch& how, std::unique_ptr<Exchange> exchange) {
  if (how.way != Launch::Way::run) return hand_out(std::move(exchange), how.way == Launch::Way::prepare, how.request);
  exchange->start();
  exchange->rank.wait_for_end([&] { return exchange->ended(); });
  if (const int error = exchange->finish(); error != MPI_SUCCESS) fail(error, "{}", exchange->fault());
}

}  // namespace brant::mpi
