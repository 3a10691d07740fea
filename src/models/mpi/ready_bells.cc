#include "models/mpi/ready_bells.h"

#include <fmt/format.h>

#include "brant/mpi/partition_bells.h"
#include "models/mpi/calls.h"
#include "models/mpi/partitioned_send.h"
#include "models/mpi/process.h"

namespace brant::mpi {
namespace {

NotifierOptions options_for(int partitions) noexcept {
  const auto count = static_cast<std::uint32_t>(partitions);
  return {.bells = count, .others = 1, .waits = count, .patience = Worker::kForever};
}

PartitionedSend& idle_send(MPI_Request handle) {
  auto* const send = dynamic_cast<PartitionedSend*>(object_of<Request>(handle));
  if (send == nullptr) {
    throw Error(Status::invalid_argument,
                "brant::mpi::PartitionBells: the request is none of MPI_Psend_init, or was freed");
  }
  if (send->active() && !send->ended()) {
    throw Error(Status::invalid_argument,
                "brant::mpi::PartitionBells: a message of the request is under way: make them before MPI_Start");
  }
  return *send;
}

}  // namespace

ReadyBells::ReadyBells(PartitionedSend& send, int partitions)
    : send_(send),
      notifier_(send.rank.process.runtime(), options_for(partitions)),
      waits_(static_cast<std::size_t>(partitions)) {
  for (int p = 0; p < partitions; ++p) {
    bells_.push_back(notifier_.make());
    Wait& wait = waits_[static_cast<std::size_t>(p)];
    wait.self = this;
    wait.partition = p;
  }
}

ReadyBells::~ReadyBells() {
  for (Wait& wait : waits_) wait.op.detach();
}

void ReadyBells::await_next() noexcept {
  ++epoch_;
  for (Wait& wait : waits_) {
    wait.op.delivered = {[](void* of, const OpResult& result) noexcept {
                           auto& rung = *static_cast<Wait*>(of);
                           rung.self->send_.rung(rung.partition, result.status);
                         },
                         &wait};
    const Status status = bell(wait.partition).post_when(wait.op, epoch_);
    if (status != Status::in_progress) send_.rung(wait.partition, status);
  }
}

void ReadyBells::withdraw(int partition) noexcept { waits_[static_cast<std::size_t>(partition)].op.detach(); }

PartitionBells::PartitionBells(MPI_Request send) : bells_(&idle_send(send).bells()) {}

notify::DeviceBell PartitionBells::device(int partition) const noexcept {
  return bells_->has(partition) ? bells_->bell(partition).device() : notify::DeviceBell{};
}

std::uint64_t PartitionBells::epoch() const noexcept { return bells_->epoch(); }

Status PartitionBells::enqueue_ready(StreamHandle stream, int partition, std::uint64_t epoch) const noexcept {
  if (!bells_->has(partition)) return Status::invalid_argument;
  return bells_->bell(partition).enqueue_ring(stream, epoch);
}

}  // namespace brant::mpi
