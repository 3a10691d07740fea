#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "brant/base/ids.h"
#include "models/mpi/envelope.h"

namespace brant::mpi {

class Process;

/// What the name of a port says: "brant-port:HOST:FILE". The file, in the meeting folder, has the address of the
/// process that has opened the port.
struct PortName {
  std::string host;
  std::string file;

  [[nodiscard]] static PortName parse(std::string_view text);  ///< Throws MPI_ERR_PORT.
  [[nodiscard]] std::string text() const { return "brant-port:" + host + ":" + file; }
  /// By which `knock` names it to the process that has opened it.
  [[nodiscard]] std::uint64_t number() const noexcept;
};

/// The port is there, and so is the process that has opened it, as far as this host can tell. The address of that
/// process. Throws MPI_ERR_PORT.
[[nodiscard]] std::string address_of_port(const PortName& name);

class MeetingFolder;
/// Once in a process: files that processes have left behind which have ended, ports and names of services.
void remove_stale_files(const MeetingFolder& folder) noexcept;

/// The ports that this process has opened, and those who want to connect to them.
class Ports {
 public:
  /// Somebody who has knocked.
  struct Guest {
    Rank process;
    std::int32_t tag = 0;
  };
  using Limit = std::optional<std::chrono::nanoseconds>;

  explicit Ports(Process& process) noexcept : process_(process) {}
  ~Ports();
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;

  /// Throws CallError, Error.
  [[nodiscard]] std::string open();
  /// Who waits at it is refused. Throws MPI_ERR_PORT where this process has not opened it.
  void close(std::string_view name);
  /// The next one at a port, who is told so. Waits for one as long as `goes_on` holds; nothing: it did not hold any
  /// more, or the time is over. Throws MPI_ERR_PORT.
  [[nodiscard]] std::optional<Guest> admit(std::string_view name, Limit limit, const std::function<bool()>& goes_on);
  /// Knocks, and waits until it is admitted: the tag for what the two say to each other. Throws MPI_ERR_PORT.
  [[nodiscard]] std::int32_t knock(Rank process, const PortName& name, Limit limit);

  /// For people: what this process waits for; empty: for nobody at a port.
  [[nodiscard]] const std::string& awaited() const noexcept { return awaited_; }

  void hear(Rank from, Word word, const DoorWord& body);
  /// The process is lost.
  void forget(Rank process) noexcept;

 private:
  struct Port {
    PortName name;
    std::deque<Guest> guests;
  };
  void answer(const Guest& guest, bool opened) noexcept;
  /// Waits as a rank does, in short pieces where somebody else has to be asked.
  [[nodiscard]] bool wait(Limit limit, const std::function<bool()>& done);

  Process& process_;
  unsigned opened_ = 0;
  std::string awaited_;
  std::map<std::uint64_t, Port> ports_;                ///< By number.
  std::map<std::int32_t, std::optional<bool>> asked_;  ///< By tag: what was answered.
};

}  // namespace brant::mpi
