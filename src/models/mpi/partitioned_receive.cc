#include "models/mpi/partitioned_receive.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/mpi/call_error.h"
#include "models/mpi/rank_state.h"

namespace brant::mpi {

PartitionedReceive::PartitionedReceive(RankState& rank_in, Communicator& communicator_in, void* buffer, int partitions,
                                       MPI_Count count, MPI_Datatype type, int source, int tag)
    : CompositeRequest(rank_in, &communicator_in),
      buffer_(static_cast<std::byte*>(buffer)),
      partitions_(partitions),
      count_(count),
      source_(source),
      whole_(buffer, partitions * count, type),
      type_(&datatype_of(type)),
      unpacked_(static_cast<std::size_t>(partitions)) {
  if (source == MPI_PROC_NULL) return;
  hearing_ =
      std::make_unique<ReceiveRequest>(rank, *communicator, TypedBuffer(&setup_, sizeof setup_, MPI_BYTE), source, tag);
  hearing_->wanted.context = PartitionedSetup::context(*communicator);
  hearing_->whole = this;
  hearing_->start();
}

void PartitionedReceive::start() noexcept {
  begin_as_whole();
  unpacked_.assign(unpacked_.size(), false);
  if (hearing_ == nullptr) {
    outcome.source = MPI_PROC_NULL;
    return end(MPI_SUCCESS);
  }
  if (hearing_->ended()) start_parts();
}

void PartitionedReceive::part_ended(Request& part) noexcept {
  if (&part != hearing_.get()) return CompositeRequest::part_ended(part);
  if (active() && !ended()) return start_parts();
  if (freed) end(MPI_SUCCESS);  // which was never started, and goes with that
}

/// Partitions of the sender land where they belong: by the datatype if they are the receiver's too, else as bytes.
std::vector<std::unique_ptr<ReceiveRequest>> PartitionedReceive::make_parts() {
  std::vector<std::unique_ptr<ReceiveRequest>> made;
  const bool same = setup_.partitions == partitions_ && setup_.bytes == whole_.bytes();
  if (!same && !whole_.contiguous()) packed_ = std::make_unique<std::byte[]>(whole_.bytes() + 1);
  std::byte* const bytes = packed_ != nullptr ? packed_.get() : buffer_;
  const std::size_t part_bytes =
      setup_.partitions > 0 ? static_cast<std::size_t>(setup_.bytes) / static_cast<std::size_t>(setup_.partitions) : 0;
  for (int p = 0; p < setup_.partitions; ++p) {
    const std::size_t begin = std::min(static_cast<std::size_t>(p) * part_bytes, whole_.bytes());
    const auto room = static_cast<MPI_Count>(std::min(part_bytes, whole_.bytes() - begin));
    const TypedBuffer landing =
        same ? TypedBuffer::partition(buffer_, p, count_, type_->handle()) : TypedBuffer(bytes + begin, room, MPI_BYTE);
    auto part = std::make_unique<ReceiveRequest>(rank, *communicator, landing, source_, setup_.first_tag + p);
    part->wanted.context = PartitionedSetup::data_context(*communicator);
    part->whole = this;
    made.push_back(std::move(part));
  }
  return made;
}

void PartitionedReceive::start_parts() noexcept {
  if (hearing_->outcome.error != MPI_SUCCESS) return end(hearing_->outcome.error);
  try {
    if (receives_.empty()) receives_ = make_parts();
  } catch (const CallError& error) {
    return end(error.error_class());
  } catch (const std::bad_alloc&) {
    return end(MPI_ERR_NO_MEM);
  }
  begin_parts(receives_.size());
  for (const auto& part : receives_) part->start();
  drop_one();
}

int PartitionedReceive::conclude() noexcept {
  outcome.source = hearing_->outcome.source;
  outcome.tag = hearing_->outcome.tag;
  outcome.bytes = std::min(static_cast<std::size_t>(setup_.bytes), whole_.bytes());
  return first_error();
}

bool PartitionedReceive::all_came(std::size_t first_byte, std::size_t last_byte) const noexcept {
  if (!hearing_->ended() || receives_.empty()) return false;
  std::size_t begin = 0;
  for (const auto& part : receives_) {
    const std::size_t end = begin + part->landing.bytes();
    if (begin < last_byte && end > first_byte && !part->ended()) return false;
    begin = end;
  }
  return true;
}

bool PartitionedReceive::arrived(int partition) {
  require(partition >= 0 && partition < partitions_, MPI_ERR_ARG, "the message has partitions 0 to {}, and not {}",
          partitions_ - 1, partition);
  if (!active()) return true;
  if (ended()) {
    require(outcome.error == MPI_SUCCESS, outcome.error,
            "the receive of partitions from rank {} has ended with an error: that rank, or its process, may have died",
            source_);
  } else {
    const std::size_t bytes = whole_.bytes() / static_cast<std::size_t>(partitions_);
    const std::size_t begin = static_cast<std::size_t>(partition) * bytes;
    // One without bytes is there when all is.
    if (bytes == 0 || !all_came(begin, begin + bytes)) return false;
  }
  unpack(partition);
  return true;
}

void PartitionedReceive::unpack(int partition) {
  const auto p = static_cast<std::size_t>(partition);
  if (packed_ == nullptr || unpacked_[p]) return;
  const TypedBuffer landing = TypedBuffer::partition(buffer_, partition, count_, type_->handle());
  landing.unpack_any(packed_.get() + p * landing.bytes(), landing.bytes());
  unpacked_[p] = true;
}

int PartitionedReceive::finish() noexcept {
  try {
    for (int p = 0; p < partitions_ && outcome.error == MPI_SUCCESS; ++p) unpack(p);
  } catch (const CallError& error) {
    outcome.error = error.error_class();
  } catch (const Error& error) {
    outcome.error = error_class_of(error.status());
  } catch (const std::bad_alloc&) {
    outcome.error = MPI_ERR_NO_MEM;
  }
  return outcome.error;
}

std::string PartitionedReceive::text() const {
  return hearing_ == nullptr || hearing_->ended()
             ? fmt::format("a receive of partitions from rank {}, of which {} have not come", source_, open())
             : fmt::format("a receive of partitions from rank {}, which has not made its send", source_);
}

}  // namespace brant::mpi
