#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "brant/base/result.h"
#include "brant/base/status.h"

/// Bootstrap: who am I, and one exchange of records with the others. Adapters: boot/launcher (`brant run`), boot/pmix
/// (dlopen), boot/pmi (MPICH's mpiexec), boot/tcp_store (torchrun), boot/single. All calls are made by one thread,
/// before and after the real communication.
namespace brant::port {

struct JobInfo {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< Among the processes of this host.
  int local_size = 1;
  std::string job_id;    ///< The same in all processes of the job, different between jobs on one host.
  std::string launcher;  ///< "brant run", "pmix", "pmi", "torchrun", "single".
};

class Boot {
 public:
  Boot() = default;
  Boot(const Boot&) = delete;
  Boot& operator=(const Boot&) = delete;
  virtual ~Boot() = default;

  [[nodiscard]] virtual const JobInfo& job() const noexcept = 0;

  /// Publishes a value; visible to others after the next fence of all. Values up to 1 MiB; keys up to 64 characters.
  virtual Status put(const std::string& key, std::span<const std::byte> value) noexcept = 0;
  /// Waits until all processes called it. `peer_lost` if one died first, `timed_out` at the deadline.
  virtual Status fence(std::chrono::milliseconds timeout) noexcept = 0;
  /// What `rank` put under `key` before a fence; not_found otherwise.
  virtual Result<std::vector<std::byte>> get(int rank, const std::string& key) noexcept = 0;

  /// Asks the launcher to start a job of its own beside this one: `plan` is a memory file with a SpawnPlan, `line` the
  /// launcher's end of a socket (boot/launcher/spawn_plan.h). Both stay the caller's. not_supported: it starts none.
  virtual Status spawn(int plan, int line) noexcept {
    static_cast<void>(plan);
    static_cast<void>(line);
    return Status::not_supported;
  }

  /// The last failure in words (which rank died, which server refused), for error texts. Empty if none.
  [[nodiscard]] virtual std::string last_error() const = 0;

  /// Tells the launcher that this process ends well. After it only the destructor may be called.
  virtual void finalize() noexcept = 0;
  /// Asks the launcher to end the whole job with this exit code and message.
  virtual void abort(int exit_code, const std::string& message) noexcept = 0;
};

/// Every process contributes a record; the result is indexed by rank. Collective. Throws Error (peer_lost, timed_out).
std::vector<std::vector<std::byte>> allgather(Boot& boot, const std::string& key, std::span<const std::byte> mine,
                                              std::chrono::milliseconds timeout);

}  // namespace brant::port
