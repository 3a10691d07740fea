#include "models/mpi/partitioned_send.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/mpi/call_error.h"
#include "models/mpi/rank_state.h"

namespace brant::mpi {

PartitionedSend::PartitionedSend(RankState& rank_in, Communicator& communicator_in, const void* buffer, int partitions,
                                 MPI_Count count, MPI_Datatype type, int destination, int tag)
    : CompositeRequest(rank_in, &communicator_in), ready_(static_cast<std::size_t>(partitions)) {
  if (destination == MPI_PROC_NULL) return;
  PartitionedSetup setup{rank.take_partition_tags(partitions), partitions, 0};
  for (int p = 0; p < partitions; ++p) {
    const TypedBuffer source = TypedBuffer::partition(buffer, p, count, type);
    auto part = std::make_unique<SendRequest>(rank, *communicator, source, destination, setup.first_tag + p,
                                              SendMode::standard);
    part->context = PartitionedSetup::data_context(*communicator);
    part->whole = this;
    setup.bytes += source.bytes();
    sends_.push_back(std::move(part));
  }
  tell_receiver(setup, destination, tag);
}

/// A message that is so small leaves with a copy of the words, and goes by itself.
void PartitionedSend::tell_receiver(const PartitionedSetup& setup, int destination, int tag) {
  auto telling = std::make_unique<SendRequest>(rank, *communicator, TypedBuffer(&setup, sizeof setup, MPI_BYTE),
                                               destination, tag, SendMode::standard);
  telling->context = PartitionedSetup::context(*communicator);
  telling->freed = true;
  telling.release()->start();
}

void PartitionedSend::start() noexcept {
  begin_parts(ready_.size());
  ready_.assign(ready_.size(), false);
  if (bells_) bells_->await_next();
  drop_one();
}

void PartitionedSend::ready(int partition) {
  require(active() && !ended(), MPI_ERR_REQUEST, "the message has not been started: no partition of it can be ready");
  require(partition >= 0 && static_cast<std::size_t>(partition) < ready_.size(), MPI_ERR_ARG,
          "the message has partitions 0 to {}, and not {}", static_cast<int>(ready_.size()) - 1, partition);
  const auto p = static_cast<std::size_t>(partition);
  require(!ready_[p], MPI_ERR_ARG, "partition {} is ready already", partition);
  if (bells_) bells_->withdraw(partition);
  leave(p);
}

void PartitionedSend::leave(std::size_t partition) noexcept {
  ready_[partition] = true;
  if (sends_.empty()) return drop_one();
  sends_[partition]->start();
}

ReadyBells& PartitionedSend::bells() {
  if (!bells_) bells_ = std::make_unique<ReadyBells>(*this, static_cast<int>(ready_.size()));
  return *bells_;
}

/// A bell fails with its device alone, whose memory is then of no use: the copy of the partition will say so.
void PartitionedSend::rung(int partition, Status status) noexcept {
  if (status != Status::canceled) leave(static_cast<std::size_t>(partition));
}

std::string PartitionedSend::text() const {
  return fmt::format("a send of {} partitions, of which {} have not left ({} are not ready)", ready_.size(), open(),
                     std::ranges::count(ready_, false));
}

}  // namespace brant::mpi
