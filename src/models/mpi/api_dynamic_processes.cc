#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "models/mpi/calls.h"
#include "models/mpi/communicators.h"
#include "models/mpi/dynamic/connections.h"
#include "models/mpi/dynamic/fd_talk.h"
#include "models/mpi/dynamic/meeting.h"
#include "models/mpi/dynamic/names.h"
#include "models/mpi/dynamic/spawning.h"
#include "models/mpi/dynamic/talk.h"
#include "models/mpi/export_forms.h"
#include "mpi_generated/api.h"

/// Groups of processes that were not started together.
namespace brant::mpi::api {

namespace {

int g_spawn_error = MPI_ERR_SPAWN;

/// Seconds, by the key `timeout`.
Ports::Limit limit_of(MPI_Info info) {
  const Info::Entry* entry = info != MPI_INFO_NULL ? info_of(info).find("timeout") : nullptr;
  if (entry == nullptr) return std::nullopt;
  char* end = nullptr;
  const double seconds = std::strtod(entry->second.c_str(), &end);
  require(end != entry->second.c_str() && *end == 0 && seconds >= 0 && seconds < 1e8, MPI_ERR_INFO_VALUE,
          "the value of timeout is '{}': it must be a number of seconds", entry->second);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

/// At the root alone the port and the info object are of interest.
void require_group(const Communicator& local, int root, const void* newcomm) {
  require_place(newcomm, "newcomm");
  require_one_group(local);
  require_rank(local, root, "the root");
  static_cast<void>(process()->connections());
}

std::string port_of(const char* port_name) {
  require(port_name != nullptr, MPI_ERR_PORT, "the name of the port is null");
  return port_name;
}

/// What the root asks for; the error codes have room for that many at each rank.
struct Asked {
  std::vector<SpawnCommand> commands;
  int processes = 0;
};

std::unique_ptr<Communicator> spawn(Communicator& local, int root, const Asked& asked) {
  return accept_group(local, root, [&] {
    Connections& connections = process()->connections();
    const std::string port = connections.ports().open();
    struct Closed {
      Connections& connections;
      const std::string& port;
      ~Closed() { connections.ports().close(port); }
    } const closed{connections, port};
    connections.spawned().start(make_plan(asked.commands, port, current_rank().id.value));
    const auto guest = connections.ports().admit(port, std::nullopt, [&] { return connections.spawned().goes_on(); });
    require(guest.has_value(), MPI_ERR_SPAWN, "'{}' was not spawned: {}", asked.commands.front().program,
            connections.spawned().why_not());
    connections.spawned().note_met();
    return *guest;
  });
}

/// Fills the error codes whatever happens.
int spawn_all(const char* function, int root, MPI_Comm comm, MPI_Comm* intercomm, int codes[], Asked (*ask)(void*),
              void* context) {
  return on_communicator(function, comm, [&](Communicator& local) {
    require_group(local, root, static_cast<const void*>(intercomm));
    *intercomm = MPI_COMM_NULL;
    Asked asked;
    auto fault = error_in([&] {
      if (local.rank == root) asked = ask(context);
    });
    const bool refused = spread_number(local, root, fault ? 1 : 0) != 0;
    const int count = spread_number(local, root, asked.processes);
    std::unique_ptr<Communicator> made;
    if (!refused) fault = error_in([&] { made = spawn(local, root, asked); });
    const int started = made != nullptr ? made->remote->size() : 0;
    for (int i = 0; codes != MPI_ERRCODES_IGNORE && i < count; ++i)
      codes[i] = i < started ? int{MPI_SUCCESS} : g_spawn_error;
    if (fault) throw CallError(*fault);
    require(!refused, MPI_ERR_SPAWN, "rank {} asks for what cannot be spawned", root);
    *intercomm = publish(std::move(made), local);
  });
}

const Info* info_or_none(MPI_Info info) { return info != MPI_INFO_NULL ? &info_of(info) : nullptr; }

}  // namespace

void tell_spawn_errors_as(int code) noexcept { g_spawn_error = code; }

int open_port(MPI_Info, char* port_name) noexcept {
  return call("MPI_Open_port", [&] {
    require_place(port_name, "port_name");
    store_text(process()->connections().ports().open(), port_name, MPI_MAX_PORT_NAME, nullptr);
  });
}

int close_port(const char* port_name) noexcept {
  return call("MPI_Close_port", [&] { process()->connections().ports().close(port_of(port_name)); });
}

int comm_accept(const char* port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm) noexcept {
  return on_communicator("MPI_Comm_accept", comm, [&](Communicator& local) {
    require_group(local, root, static_cast<const void*>(newcomm));
    *newcomm = MPI_COMM_NULL;
    auto made = accept_group(local, root, [&] {
      const auto guest =
          process()->connections().ports().admit(port_of(port_name), limit_of(info), [] { return true; });
      require(guest.has_value(), MPI_ERR_PORT, "nobody has connected to the port {} in time", port_name);
      return *guest;
    });
    *newcomm = publish(std::move(made), local);
  });
}

int comm_connect(const char* port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm) noexcept {
  return on_communicator("MPI_Comm_connect", comm, [&](Communicator& local) {
    require_group(local, root, static_cast<const void*>(newcomm));
    *newcomm = MPI_COMM_NULL;
    *newcomm = publish(connect_group(local, root, [&] { return Where{port_of(port_name), limit_of(info)}; }), local);
  });
}

int comm_spawn(const char* command, char* argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
               MPI_Comm* intercomm, int array_of_errcodes[]) noexcept {
  const auto ask = [&] { return Asked{{{command, argv, maxprocs, info_or_none(info)}}, maxprocs}; };
  return spawn_all(
      "MPI_Comm_spawn", root, comm, intercomm, array_of_errcodes,
      [](void* held) { return (*static_cast<decltype(ask)*>(held))(); },
      const_cast<void*>(static_cast<const void*>(&ask)));
}

int comm_spawn_multiple(int count, char* array_of_commands[], char** array_of_argv[], const int array_of_maxprocs[],
                        const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm* intercomm,
                        int array_of_errcodes[]) noexcept {
  const auto ask = [&] {
    require(count > 0, MPI_ERR_ARG, "{} commands are to be spawned", count);
    require(array_of_commands != nullptr && array_of_maxprocs != nullptr, MPI_ERR_ARG, "the commands are null");
    Asked asked;
    for (int i = 0; i < count; ++i) {
      char** const arguments = array_of_argv != MPI_ARGVS_NULL ? array_of_argv[i] : MPI_ARGV_NULL;
      const Info* const info = array_of_info != nullptr ? info_or_none(array_of_info[i]) : nullptr;
      asked.commands.push_back({array_of_commands[i], arguments, array_of_maxprocs[i], info});
      asked.processes += array_of_maxprocs[i];
    }
    return asked;
  };
  return spawn_all(
      "MPI_Comm_spawn_multiple", root, comm, intercomm, array_of_errcodes,
      [](void* held) { return (*static_cast<decltype(ask)*>(held))(); },
      const_cast<void*>(static_cast<const void*>(&ask)));
}

int comm_get_parent(MPI_Comm* parent) noexcept {
  return call("MPI_Comm_get_parent", [&] {
    require_place(static_cast<const void*>(parent), "parent");
    *parent = current_rank().parent;
  });
}

/// The one with the lower name accepts.
int comm_join(int fd, MPI_Comm* intercomm) noexcept {
  return call("MPI_Comm_join", [&] {
    require_place(static_cast<const void*>(intercomm), "intercomm");
    *intercomm = MPI_COMM_NULL;
    Communicator& self = *current_rank().self;
    Ports& ports = process()->connections().ports();
    const std::string port = ports.open();
    struct Closed {
      Ports& ports;
      const std::string& port;
      ~Closed() { ports.close(port); }
    } const closed{ports, port};
    const std::string other = swap_names(fd, port);
    const bool accepts = port < other;
    std::unique_ptr<Communicator> made;
    if (accepts) {
      made = accept_group(self, 0, [&] {
        const auto guest = ports.admit(port, std::nullopt, [fd] { return is_open_socket(fd); });
        require(guest.has_value(), MPI_ERR_PROC_ABORTED, "the process at the other end of the socket {} has ended", fd);
        return *guest;
      });
    } else {
      made = connect_group(self, 0, [&] { return Where{other, std::nullopt}; });
    }
    *intercomm = publish(std::move(made), self);
  });
}

int publish_name(const char* service_name, MPI_Info, const char* port_name) noexcept {
  return call("MPI_Publish_name", [&] { publish_service(service_name, port_of(port_name)); });
}

int unpublish_name(const char* service_name, MPI_Info, const char* port_name) noexcept {
  return call("MPI_Unpublish_name", [&] { unpublish_service(service_name, port_of(port_name)); });
}

int lookup_name(const char* service_name, MPI_Info, char* port_name) noexcept {
  return call("MPI_Lookup_name", [&] {
    require_place(port_name, "port_name");
    store_text(look_up_service(service_name), port_name, MPI_MAX_PORT_NAME, nullptr);
  });
}

}  // namespace brant::mpi::api
