#include "models/mpi/request.h"

#include <algorithm>
#include <cstddef>
#include <new>

#include <fmt/format.h>

#include "base/object_pool.h"
#include "models/mpi/calls.h"
#include "models/mpi/checks/checks.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

/// Of the requests that most programs make. Nothing is written in it when it is taken.
struct Room {
  Room() noexcept {}  // NOLINT(modernize-use-equals-default): that one would fill it with zeros
  alignas(std::max_align_t) std::byte bytes[std::max(sizeof(SendRequest), sizeof(ReceiveRequest))];
};

/// For the process, whatever ranks it has: calls of MPI do not overlap. Requests may outlive MPI_Finalize, so it never
/// goes.
ObjectPool<Room, 64>& rooms() noexcept {
  using Pool = ObjectPool<Room, 64>;
  alignas(Pool) static std::byte place[sizeof(Pool)];
  static Pool* const pool = ::new (static_cast<void*>(place)) Pool(std::size_t{1} << 30);
  return *pool;
}

}  // namespace

void* Request::operator new(std::size_t bytes) {
  if (bytes > sizeof(Room)) return ::operator new(bytes);
  void* const place = rooms().take();
  if (place == nullptr) throw std::bad_alloc();
  return place;
}

void Request::operator delete(void* place, std::size_t bytes) noexcept {
  if (bytes > sizeof(Room)) return ::operator delete(place, bytes);
  rooms().give_back(static_cast<Room*>(place));
}

Request::Request(RankState& rank_in, Communicator* communicator_in) noexcept
    : Object(kKind), rank(rank_in), communicator(communicator_in) {
  if (communicator != nullptr) ++communicator->users;
}

Request::~Request() {
  if (checks() != nullptr) [[unlikely]]
    checks()->census.remove(this);
  if (hook.linked()) rank.under_way.remove(*this);
  if (communicator != nullptr) drop_communicator(*communicator);
}

void Request::begin() noexcept {
  begin_as_whole();
  rank.under_way.push_back(*this);
}

void Request::begin_as_whole() noexcept {
  outcome = {};
  finished_ = false;
  state_ = State::under_way;
}

void Request::end(int error) noexcept {
  outcome.error = error;
  state_ = State::ended;
  if (hook.linked()) rank.under_way.remove(*this);
  rank.note_end();
  if (freed) {
    static_cast<void>(let_go());
    delete this;
  } else if (whole != nullptr) {
    whole->part_ended(*this);
  }
}

SendRequest::~SendRequest() {
  rank.process.transport().forget(*this);
  if (buffered != nullptr) buffered->remove(source.bytes(), buffered_number);
}

void SendRequest::start() noexcept {
  begin();
  rank.process.transport().send(*this);
}

/// What has left already ends by its lane.
void SendRequest::lose(Rank process) noexcept {
  if (ticket == 0 || Process::process_of(communicator->id_of(destination)) != process) return;
  rank.process.transport().forget(*this);
  end(MPI_ERR_PROC_ABORTED);
}

void SendRequest::lose_rank(RankId id) noexcept {
  if (ticket == 0 || communicator->id_of(destination) != id) return;
  rank.process.transport().forget(*this);
  end(MPI_ERR_PROC_ABORTED);
}

std::string SendRequest::text() const {
  return fmt::format("a send of {} bytes to rank {} of {} with tag {}", source.bytes(), destination,
                     name_of_peers(*communicator), tag);
}

std::string ReceiveRequest::text() const {
  const std::string from = source == MPI_ANY_SOURCE ? "any rank" : fmt::format("rank {}", source);
  const std::string tag = wanted.tag == MPI_ANY_TAG ? "any tag" : fmt::format("tag {}", wanted.tag);
  return fmt::format("a receive of {} bytes from {} of {} with {}", landing.bytes(), from, name_of_peers(*communicator),
                     tag);
}

std::string ReceiveRequest::fault() const {
  return checks() != nullptr ? checks()->labels.fault_of(*this) : std::string();
}

ReceiveRequest::~ReceiveRequest() {
  rank.process.transport().forget(*this);
  if (checks() != nullptr) [[unlikely]]
    checks()->labels.forget(*this);
}

void ReceiveRequest::start() noexcept {
  begin();
  rank.process.transport().receive(*this);
}

int ReceiveRequest::cancel() noexcept {
  if (!posted) return MPI_SUCCESS;
  rank.process.transport().forget(*this);
  outcome.cancelled = true;
  end(MPI_SUCCESS);
  return MPI_SUCCESS;
}

void ReceiveRequest::lose(Rank process) noexcept {
  const auto lives_there = [process](RankId id) { return Process::process_of(id) == process; };
  const bool waits_for_any =
      posted && source == MPI_ANY_SOURCE && std::ranges::any_of(communicator->peers().ids(), lives_there);
  const bool waits_for_it = posted && source != MPI_ANY_SOURCE && lives_there(communicator->id_of(source));
  const bool was_announced = ticket != 0 && lives_there(communicator->id_of(outcome.source));
  if (!waits_for_any && !waits_for_it && !was_announced) return;
  rank.process.transport().forget(*this);
  end(MPI_ERR_PROC_ABORTED);
}

/// What it has sent has arrived, so none of it is on its way.
void ReceiveRequest::lose_rank(RankId id) noexcept {
  if (!posted || source == MPI_ANY_SOURCE || communicator->id_of(source) != id) return;
  rank.process.transport().forget(*this);
  end(MPI_ERR_PROC_ABORTED);
}

void EmptyRequest::start() noexcept {
  begin();
  outcome.source = MPI_PROC_NULL;
  end(MPI_SUCCESS);
}

}  // namespace brant::mpi
