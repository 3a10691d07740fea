#include "models/mpi/rank_state.h"

#include <numeric>

#include "models/mpi/communicators.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

SharedMembers all_ranks() {
  std::vector<RankId> all(static_cast<std::size_t>(Process::placement().ranks));
  for (std::size_t i = 0; i < all.size(); ++i) all[i].value = static_cast<std::int32_t>(i);
  return std::make_shared<Members>(std::move(all));
}

}  // namespace

RankState::RankState(Process& process_in, RankId id_in)
    : process(process_in),
      id(id_in),
      world(make_communicator_later(id_in, all_ranks(), 0)),
      self(make_communicator_later(id_in, std::make_shared<Members>(std::vector{id_in}), 1)),
      threads_(process_in.threads()),
      slot_(Process::slot_of(id_in)) {
  world->name = "MPI_COMM_WORLD";
  self->name = "MPI_COMM_SELF";
}

RankState::~RankState() = default;

void RankState::start_world(int level) {
  static_cast<void>(world->team());
  static_cast<void>(self->team());
  thread_level_ = level;
  main_thread_ = std::this_thread::get_id();
  has_world_ = true;
  ++uses_;
}

void RankState::end_world() noexcept {
  has_world_ = false;
  --uses_;
}

Session& RankState::open_session(ErrorHandler& handler, int level) {
  Session& session = sessions_.open(handler);
  ++uses_;
  if (!has_world_) thread_level_ = level;
  if (main_thread_ == std::thread::id()) main_thread_ = std::this_thread::get_id();
  return session;
}

void RankState::close_session(const Session& session) noexcept {
  sessions_.close(session);
  --uses_;
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
