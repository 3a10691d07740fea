#include "models/mpi/checks/given_memory.h"

#include "models/mpi/call_error.h"
#include "models/mpi/checks/checks.h"
#include "models/mpi/rank_state.h"

namespace brant::mpi {

void GivenMemory::remove(const RankState& rank, const void* base) {
  const auto found = blocks_.find(base);
  if (found == blocks_.end()) return;
  require_unused(rank, base, found->second, "memory of MPI_Alloc_mem", MPI_ERR_BASE);
  blocks_.erase(found);
}

namespace {

/// Receives and sends of blocking calls of other threads are under way without a handle.
const Request* find_user(const RankState& rank, const std::byte* base, std::size_t bytes) {
  using RequestList = IntrusiveList<Request, &Request::hook>;
  for (const Request* request = rank.under_way.front(); request != nullptr; request = RequestList::next(*request)) {
    if (request->uses(base, bytes)) return request;
  }
  for (const Request* request : checks()->census.requests_of(rank.id)) {
    if (request->active() && request->uses(base, bytes)) return request;
  }
  return nullptr;
}

}  // namespace

void GivenMemory::require_unused(const RankState& rank, const void* base, std::size_t bytes, const char* what,
                                 int error_class) {
  const Request* const user = find_user(rank, static_cast<const std::byte*>(base), bytes);
  if (user == nullptr) return;
  const char* const maker = checks()->census.maker_of(user);
  fail(error_class, "{} ({} bytes at {}) is still the buffer of {}{}{}: wait for that first", what, bytes, base,
       user->text(), maker != nullptr ? ", begun by " : "", maker != nullptr ? maker : "");
}

}  // namespace brant::mpi
