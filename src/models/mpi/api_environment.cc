#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "brant/mpi/runtime.h"
#include "models/mpi/call_turns.h"
#include "models/mpi/calls.h"
#include "models/mpi/dynamic/connections.h"
#include "models/mpi/enqueue/enqueue_thread.h"
#include "models/mpi/export_forms.h"
#include "models/mpi/rank_life.h"
#include "mpi_generated/api.h"

namespace brant::mpi {

namespace {

/// Errors before there is a handler.
[[noreturn]] void end_start(const char* function, const char* why) noexcept {
  try {
    end_job(1, fmt::format("brant MPI: {} failed: {}", function, why));
  } catch (const std::exception&) {
    end_job(1, "brant MPI: no memory to start");
  }
}

int start_mpi(const char* function, int required, int* provided) noexcept {
  if (rank_life().world != RankLife::World::before)
    end_start(function, "MPI was initialised before, which happens once in a process");
  const int level = granted_thread_level(required);
  try {
    start_world(level);
  } catch (const std::exception& error) {
    end_start(function, error.what());
  }
  if (provided != nullptr) *provided = level;
  return MPI_SUCCESS;
}

/// Sessions do not count.
void require_world(const char* function) noexcept {
  if (rank_life().world == RankLife::World::running) return;
  try {
    end_job(1, fmt::format("brant MPI: {} was called before MPI_Init or after MPI_Finalize", function));
  } catch (const std::exception&) {
    end_job(1, "brant MPI: MPI_Finalize was called before MPI_Init or after MPI_Finalize");
  }
}

/// Whatever the other threads wait for would not come any more, and what they wait in would go.
void require_no_other_call() noexcept {
  if (detail::the_turns == nullptr || !detail::the_turns->others_wait()) return;
  end_job(1,
          "brant MPI: MPI_Finalize was called while another thread of this process is in a call of MPI: all its calls "
          "have to return first");
}

/// Objects of sessions that are still open may be freed later.
void report_what_is_left(const RankState& rank) {
  if (rank.sessions().count() != 0) return;
  const std::string left = checks()->census.left_by(rank.id);
  if (left.empty()) return;
  std::fprintf(stderr, "brant MPI: rank %d calls MPI_Finalize and has not freed what it made: %s\n", rank.id.value,
               left.c_str());
}

}  // namespace

Runtime& runtime() {
  require_open("brant::mpi::runtime");
  return process()->runtime();
}

namespace api {

int init(int*, char***) noexcept { return start_mpi("MPI_Init", MPI_THREAD_SINGLE, nullptr); }

int init_thread(int*, char***, int required, int* provided) noexcept {
  return start_mpi("MPI_Init_thread", required, provided);
}

int initialized(int* flag) noexcept {
  *flag = rank_life().world != RankLife::World::before ? 1 : 0;
  return MPI_SUCCESS;
}

int finalized(int* flag) noexcept {
  *flag = rank_life().world == RankLife::World::over ? 1 : 0;
  return MPI_SUCCESS;
}

int finalize() noexcept {
  require_world("MPI_Finalize");
  EnqueueThread* const streams = EnqueueThread::existing();
  const std::optional<CallError> late = streams != nullptr ? streams->drain_all() : std::nullopt;
  require_no_other_call();
  const int outcome = call("MPI_Finalize", [&late] {
    RankState& rank = current_rank();
    KeyValues& keys = process()->key_values();
    rank.self->attributes.remove_all(keys, MPI_COMM_SELF);
    rank.world->attributes.remove_all(keys, MPI_COMM_WORLD);
    rank.wait([&] { return rank.buffered.empty(); });
    // Whoever leaves has got what was sent to it.
    RankTeam& all = rank.world->team();
    const bool was_sound = all.fault().empty();
    const Status met = all.run(brant::barrier()).status;
    if (checks() != nullptr) [[unlikely]]
      report_what_is_left(rank);
    if (process()->has_connections()) {
      process()->connections().part();
      process()->connections().spawned().leave();
      if (Communicator* parent = find_communicator(rank.parent)) drop_communicator(*parent);
      rank.parent = MPI_COMM_NULL;
    }
    // A death is told by what needs the dead; what the program was told before, it knows.
    const bool is_told = !was_sound || met == Status::peer_lost || met == Status::canceled;
    require(met == Status::ok || is_told, error_class_of(met), "{}", all.fault());
    if (late) throw CallError(*late);
  });
  end_world();
  return outcome;
}

int query_thread(int* provided) noexcept {
  return call("MPI_Query_thread", [&] {
    require_place(provided, "provided");
    *provided = current_rank().thread_level();
  });
}

int is_thread_main(int* flag) noexcept {
  return call("MPI_Is_thread_main", [&] {
    require_place(flag, "flag");
    *flag = current_rank().is_main_thread() ? 1 : 0;
  });
}

int abort(MPI_Comm, int errorcode) noexcept {
  const Process* running = process();
  const int rank = running != nullptr ? current_rank().id.value : -1;
  const int code = (errorcode & 0xff) != 0 ? errorcode & 0xff : 1;
  try {
    end_job(code, fmt::format("brant MPI: rank {} called MPI_Abort with code {}", rank, errorcode));
  } catch (const std::exception&) {
    end_job(code, "brant MPI: MPI_Abort was called");
  }
}

int get_version(int* version, int* subversion) noexcept {
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
  return MPI_SUCCESS;
}

int get_library_version(char* version, int* resultlen) noexcept {
  store_text("brant, MPI 5.0 by its standard ABI", version, MPI_MAX_LIBRARY_VERSION_STRING, resultlen);
  return MPI_SUCCESS;
}

int get_processor_name(char* name, int* resultlen) noexcept {
  char host[MPI_MAX_PROCESSOR_NAME] = {};
  if (::gethostname(host, sizeof host - 1) != 0) std::strcpy(host, "unknown");
  store_text(host, name, MPI_MAX_PROCESSOR_NAME, resultlen);
  return MPI_SUCCESS;
}

double wtime() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double wtick() noexcept { return 1e-9; }

/// Of the hardware brant tells nothing this way.
int get_hw_resource_info(MPI_Info* hw_info) noexcept { return info_create(hw_info); }

int pcontrol(const int) noexcept { return MPI_SUCCESS; }

// What the exported functions need
// -------------------------------------------------------------------------------------------------------------------

std::int64_t member_count(MPI_Comm comm) noexcept {
  const Communicator* found = process() != nullptr ? find_communicator(comm) : nullptr;
  return found != nullptr ? found->peers().size() : 0;
}

std::int64_t group_count(MPI_Comm comm) noexcept {
  const Communicator* found = process() != nullptr ? find_communicator(comm) : nullptr;
  return found != nullptr ? found->size() : 0;
}

std::int64_t member_count_at_root(MPI_Comm comm, int root) noexcept {
  const Communicator* found = process() != nullptr ? find_communicator(comm) : nullptr;
  return found != nullptr && found->is_root(root) ? found->peers().size() : 0;
}

std::int64_t source_count(MPI_Comm comm) noexcept {
  const Communicator* found = process() != nullptr ? find_communicator(comm) : nullptr;
  return found != nullptr ? source_count_of(*found) : 0;
}

std::int64_t destination_count(MPI_Comm comm) noexcept {
  const Communicator* found = process() != nullptr ? find_communicator(comm) : nullptr;
  return found != nullptr ? destination_count_of(*found) : 0;
}

int refuse(const char* function) noexcept { return refuse(function, MPI_COMM_SELF); }

int refuse(const char* function, MPI_Comm comm) noexcept {
  require_open(function);
  return call(function, find_communicator(comm), [&] {
    fail(MPI_ERR_UNSUPPORTED_OPERATION, "brant does not implement {} yet: `brant info --mpi` lists what it does",
         function);
  });
}

void end_without_memory() noexcept { end_job(1, "brant MPI: no memory for the counts of a call"); }

}  // namespace api
}  // namespace brant::mpi
