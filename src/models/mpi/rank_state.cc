#include "models/mpi/rank_state.h"

#include <numeric>

#include "models/mpi/communicators.h"
#include "models/mpi/process.h"

namespace brant::mpi {

RankState::RankState(Process& process_in, RankId id_in) noexcept
    : process(process_in), id(id_in), threads_(process_in.threads()), slot_(Process::slot_of(id_in)) {}

RankState::~RankState() = default;

void RankState::open_communicators() {
  std::vector<RankId> all(static_cast<std::size_t>(Process::placement().ranks));
  for (std::size_t i = 0; i < all.size(); ++i) all[i].value = static_cast<std::int32_t>(i);
  world = make_communicator(*this, std::make_shared<Members>(std::move(all)), 0);
  world->name = "MPI_COMM_WORLD";
  self = make_communicator(*this, std::make_shared<Members>(std::vector{id}), 1);
  self->name = "MPI_COMM_SELF";
}

void RankState::progress() noexcept {
  process.runtime().worker().progress();
  if (threads_ != nullptr) threads_->yield();
}

void RankState::wait_until(bool (*done)(void*) noexcept, void* context) noexcept {
  if (threads_ != nullptr) return threads_->wait(done, context);
  static_cast<void>(process.runtime().worker().wait_until([&]() noexcept { return done(context); }));
}

void RankState::wait_until_end(bool (*done)(void*) noexcept, void* context) noexcept {
  if (threads_ != nullptr) return threads_->wait_for_notice(done, context);
  wait_until(done, context);
}

void RankState::note_end() noexcept {
  ++ended;
  if (threads_ != nullptr) threads_->notice(slot_);
}

}  // namespace brant::mpi
