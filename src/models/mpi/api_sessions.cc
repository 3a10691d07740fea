#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "models/mpi/calls.h"
#include "models/mpi/enqueue/enqueue_thread.h"
#include "models/mpi/memory_alloc_kinds.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

// Levels of threads
// -------------------------------------------------------------------------------------------------------------------

constexpr const char* kLevelKey = "thread_level";

struct ThreadLevel {
  int level;
  std::string_view name;
};

constexpr std::array<ThreadLevel, 4> kThreadLevels = {{{MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"},
                                                       {MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"},
                                                       {MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"},
                                                       {MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"}}};

/// What a session gets that wishes for this: one thread at a time moves the runtime.
ThreadLevel granted_level(const Info& hints) {
  std::string_view wish = kThreadLevels.front().name;
  for (const auto& [key, value] : hints.entries) {
    if (key == kLevelKey) wish = value;
  }
  const auto* const known = std::ranges::find(kThreadLevels, wish, &ThreadLevel::name);
  require(known != kThreadLevels.end(), MPI_ERR_INFO_VALUE,
          "the value of thread_level is '{}': it must be the name of a level, such as MPI_THREAD_SINGLE", wish);
  return *std::ranges::find(kThreadLevels, granted_thread_level(known->level), &ThreadLevel::level);
}

Session& open_session(MPI_Info info, ErrorHandler& handler) {
  Info hints;
  if (info != MPI_INFO_NULL) hints.entries = info_of(info).entries;
  const ThreadLevel granted = granted_level(hints);
  hints.set(kLevelKey, granted.name);
  Session& session = start_session(handler, granted.level);
  session.info.entries = std::move(hints.entries);
  return session;
}

// The end
// -------------------------------------------------------------------------------------------------------------------

/// Nobody else waits for it: its program has freed its request, or it is a buffered message.
bool is_left_to_itself(const Request& request) noexcept {
  const Request* top = &request;
  while (top->whole != nullptr) top = top->whole;
  return top->freed;
}

/// What a session began is under way, and its end is to be waited for.
bool has_work(const RankState& rank, const Session& session) noexcept {
  if (!session.buffered.empty()) return true;
  using RequestList = IntrusiveList<Request, &Request::hook>;
  for (const Request* request = rank.under_way.front(); request != nullptr; request = RequestList::next(*request)) {
    const bool is_its = request->communicator != nullptr && request->communicator->session == session.number;
    if (is_its && is_left_to_itself(*request)) return true;
  }
  return false;
}

// Process sets
// -------------------------------------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 2> kProcessSets = {"mpi://WORLD", "mpi://SELF"};

/// Throws MPI_ERR_ARG where there is no such set.
SharedMembers members_of_set(const char* name) {
  require_place(name, "pset_name");
  const RankState& rank = current_rank();
  if (name == kProcessSets[0]) return rank.world->members;
  if (name == kProcessSets[1]) return rank.self->members;
  fail(MPI_ERR_ARG, "there is no process set '{}': MPI_Session_get_nth_pset names them all", name);
}

}  // namespace

/// Errors go to the handler that the session is to have.
int session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) noexcept {
  return call_at_any_time("MPI_Session_init", [&] {
    require_place(static_cast<const void*>(session), "session");
    ErrorHandler& handler = error_handler_of(errhandler);
    *session = MPI_SESSION_NULL;
    const Unmade unmade{handler, MPI_SESSION_NULL};
    return call_at_any_time("MPI_Session_init", &unmade,
                            [&] { *session = handle_of<MPI_Session>(open_session(info, handler)); });
  });
}

/// Of other ranks it waits only for those that get messages of this session: the runtime goes on until the process
/// exits. Objects that derive from the session and were not freed are left alone.
int session_finalize(MPI_Session* session) noexcept {
  return on_session("MPI_Session_finalize", session != nullptr ? *session : MPI_SESSION_NULL, [&](Session& s) {
    const RankState& rank = current_rank();
    EnqueueThread* const streams = EnqueueThread::existing();
    const std::optional<CallError> late = streams != nullptr ? streams->drain_session(s.number) : std::nullopt;
    current_rank().wait_for_end([&] { return !has_work(rank, s); });
    const int told = late ? hand_over(&s, "MPI_Session_finalize", *late) : kSuccess;
    end_session(s);
    *session = MPI_SESSION_NULL;
    return told;
  });
}

int session_get_info(MPI_Session session, MPI_Info* info_used) noexcept {
  return on_session("MPI_Session_get_info", session, [&](const Session& s) {
    require_place(static_cast<const void*>(info_used), "info_used");
    *info_used = publish_used(s.info);
  });
}

int session_get_num_psets(MPI_Session session, MPI_Info, int* npset_names) noexcept {
  return on_session("MPI_Session_get_num_psets", session, [&](const Session&) {
    require_place(npset_names, "npset_names");
    *npset_names = static_cast<int>(kProcessSets.size());
  });
}

/// `pset_len` counts the zero at the end: how much room there is, and then how much the name takes.
int session_get_nth_pset(MPI_Session session, MPI_Info, int n, int* pset_len, char* pset_name) noexcept {
  return on_session("MPI_Session_get_nth_pset", session, [&](const Session&) {
    require_place(pset_len, "pset_len");
    require(n >= 0 && static_cast<std::size_t>(n) < kProcessSets.size(), MPI_ERR_ARG,
            "there are {} process sets, and no {}th counted from 0", kProcessSets.size(), n);
    const std::string_view name = kProcessSets[static_cast<std::size_t>(n)];
    if (*pset_len > 0) {
      require_place(pset_name, "pset_name");
      store_text(name, pset_name, *pset_len, nullptr);
    }
    *pset_len = static_cast<int>(name.size()) + 1;
  });
}

int session_get_pset_info(MPI_Session session, const char* pset_name, MPI_Info* info) noexcept {
  return on_session("MPI_Session_get_pset_info", session, [&](const Session&) {
    require_place(static_cast<const void*>(info), "info");
    const int size = members_of_set(pset_name)->size();
    Info made;
    made.set("mpi_size", std::to_string(size));
    *info = publish_copy(made);
  });
}

/// A name that no process set has gives MPI_GROUP_NULL, and is an error, as it is in other libraries.
int group_from_session_pset(MPI_Session session, const char* pset_name, MPI_Group* newgroup) noexcept {
  return on_session("MPI_Group_from_session_pset", session, [&](const Session& s) {
    require_place(static_cast<const void*>(newgroup), "newgroup");
    *newgroup = MPI_GROUP_NULL;
    *newgroup = publish_group(members_of_set(pset_name), s.number);
  });
}

int session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler) noexcept {
  return on_session("MPI_Session_set_errhandler", session,
                    [&](Session& s) { s.set_handler(error_handler_of(errhandler)); });
}

int session_get_errhandler(MPI_Session session, MPI_Errhandler* errhandler) noexcept {
  return on_session("MPI_Session_get_errhandler", session, [&](const Session& s) {
    require_place(static_cast<const void*>(errhandler), "errhandler");
    ++s.handler->users;
    *errhandler = handle_of_handler(*s.handler);
  });
}

int session_call_errhandler(MPI_Session session, int errorcode) noexcept {
  return on_session("MPI_Session_call_errhandler", session, [&](Session& s) {
    static_cast<void>(
        hand_over(&s, "MPI_Session_call_errhandler", CallError(errorcode, "the program called the handler")));
  });
}

}  // namespace brant::mpi::api
