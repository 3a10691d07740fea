#include "port/boot/pmi/pmi_boot.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/env.h"
#include "base/log.h"
#include "base/read_number.h"
#include "port/boot/key_value.h"
#include "port/boot/key_values.h"
#include "port/boot/one_at_a_time.h"
#include "port/boot/pmi/process_mapping.h"
#include "port/boot/pmi/wire.h"

namespace brant::port {
namespace {

using pmi::Wire;
using pmi::Words;
using Clock = Wire::Clock;
using namespace std::chrono_literals;

/// How long the launcher may take for one answer that waits for no other process.
constexpr std::chrono::seconds kPatience{20};

/// Of what a process puts for a fence.
constexpr int kMaxPieces = 1 << 20;

/// How long the launcher gets to pass on why a job is aborted.
constexpr std::chrono::milliseconds kTimeToRead{200};

/// The launcher knows the process, not the object: it may not start or end twice.
std::atomic<bool> boot_open{false};

/// What the process remembers between two openings. A key is never put twice, which the launcher would refuse: what a
/// process has put for a fence travels as one text, in pieces under "brant.<fence>.<rank>.<piece>".
struct Client {
  Client(int fd, int rank_in, int size_in) : wire(fd), rank(rank_in), size(size_in), owner(::getpid()) {}

  Wire wire;
  const int rank;
  const int size;
  const pid_t owner;     ///< A child of this process is no client.
  std::string space;     ///< That keys lie in: one for each job.
  std::size_t most = 0;  ///< Characters of a value.
  int local_rank = 0;
  int local_size = 1;
  std::uint64_t fences = 0;
  bool pending = false;  ///< A fence that was given up goes on: the launcher cannot take it back.
  KeyValues staged;
  std::vector<KeyValues> values;  ///< Of each rank, put before a fence.
  std::string lost;               ///< Why no fence can succeed any more.
};
std::optional<Client> g_client;

/// A launcher takes an end without it for a failure.
void leave() noexcept {
  if (!g_client || g_client->owner != ::getpid()) return;
  try {
    Words words;
    static_cast<void>(g_client->wire.ask("cmd=finalize", "finalize_ack", words, Clock::now() + 2s));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the process ends all the same
  }
}

[[noreturn]] void refuse(Status status, const std::string& why) {
  throw Error(status, fmt::format("bootstrap with PMI-1: {}. Start with MPICH's mpiexec or srun --mpi=pmi2, or use "
                                  "`brant run`; BRANT_BOOTSTRAP=single runs the process as a job of one",
                                  why));
}

/// -1: it is no number.
int number_in(std::string_view text) noexcept {
  int number = -1;
  return read_number(text, number) ? number : -1;
}

int number_of(const char* name, int least) {
  const std::string_view text = env(name);
  const int number = number_in(text);
  if (number < least)
    refuse(Status::invalid_argument, fmt::format("{}='{}' should be a number from {} on", name, text, least));
  return number;
}

void ask(Client& client, std::string_view command, std::string_view kind, Words& words, Clock::time_point deadline) {
  const Status status = client.wire.ask(command, kind, words, deadline);
  if (status != Status::ok)
    refuse(status == Status::timed_out ? Status::peer_rejected : status,
           fmt::format("{} over the socket PMI_FD={}", client.wire.error(), env("PMI_FD")));
}

/// Which ranks are on this host.
void find_place(Client& client, const std::string& mapping) {
  const std::vector<int> hosts = pmi::hosts_of_ranks(mapping, client.size);
  if (hosts.empty()) {
    if (env("MPI_LOCALRANKID").empty()) {
      refuse(Status::peer_rejected,
             "the launcher does not say which ranks are on this host, neither by the key PMI_process_mapping nor by "
             "MPI_LOCALRANKID and MPI_LOCALNRANKS in the environment");
    }
    client.local_rank = number_of("MPI_LOCALRANKID", 0);
    client.local_size = number_of("MPI_LOCALNRANKS", 1);
    return;
  }
  const int here = hosts[static_cast<std::size_t>(client.rank)];
  client.local_rank = static_cast<int>(std::count(hosts.begin(), hosts.begin() + client.rank, here));
  client.local_size = static_cast<int>(std::count(hosts.begin(), hosts.end(), here));
}

void start_client() {
  const int fd = number_of("PMI_FD", 0);
  if (::fcntl(fd, F_GETFD) < 0) {
    refuse(Status::peer_rejected,
           fmt::format("PMI_FD={} is no open socket: this process was started by one that a launcher of PMI-1 started, "
                       "and is no rank itself",
                       fd));
  }
  if (::dlsym(RTLD_DEFAULT, "MPIR_Err_create_code") != nullptr) {
    throw Error(
        Status::not_supported,
        "bootstrap with PMI-1: MPICH's library is in this process, and the launcher knows a process once. Start "
        "with the communicator instead: brant.init(via=MPI.COMM_WORLD), or brant::start_via");
  }
  const int size = number_of("PMI_SIZE", 1);
  const int rank = number_of("PMI_RANK", 0);
  if (rank >= size) refuse(Status::invalid_argument, fmt::format("PMI_RANK={} is no rank of PMI_SIZE={}", rank, size));
  Client& client = g_client.emplace(fd, rank, size);
  try {
    const auto asked = std::chrono::milliseconds(env_int("BRANT_BOOT_TIMEOUT_MS").value_or(60'000));
    const auto deadline = Clock::now() + std::min<std::chrono::milliseconds>(asked, kPatience);
    Words words;
    ask(client, "cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", words, deadline);
    ask(client, "cmd=get_maxes", "maxes", words, deadline);
    client.most = static_cast<std::size_t>(std::max(2, number_in(words["vallen_max"])) - 1);
    ask(client, "cmd=get_my_kvsname", "my_kvsname", words, deadline);
    client.space = words["kvsname"];
    const std::string get = fmt::format("cmd=get kvsname={} key=PMI_process_mapping", client.space);
    const bool is_told = client.wire.ask(get, "get_result", words, deadline) == Status::ok;
    find_place(client, is_told ? words["value"] : std::string());
    client.values.resize(static_cast<std::size_t>(size));
  } catch (...) {
    g_client.reset();
    throw;
  }
  static_cast<void>(std::atexit(leave));
}

class PmiBoot final : public Boot {
 public:
  PmiBoot() {
    if (!g_client) start_client();
    job_ = {.rank = client().rank,
            .size = client().size,
            .local_rank = client().local_rank,
            .local_size = client().local_size,
            .job_id = client().space,
            .launcher = "pmi"};
  }
  ~PmiBoot() override { boot_open.store(false, std::memory_order_release); }

  const JobInfo& job() const noexcept override { return job_; }
  Status put(const std::string& key, std::span<const std::byte> value) noexcept override;
  Status fence(std::chrono::milliseconds timeout) noexcept override;
  Result<std::vector<std::byte>> get(int rank, const std::string& key) noexcept override;
  std::string last_error() const override { return error_; }
  void finalize() noexcept override {}  // see leave()
  void abort(int exit_code, const std::string& message) noexcept override;

 private:
  static Client& client() noexcept { return *g_client; }

  std::string key_of(int rank, std::size_t piece) const {
    return fmt::format("brant.{}.{}.{}", client().fences, rank, piece);
  }
  Status publish_staged();
  Result<std::string> fetch_piece(int rank, std::size_t piece);
  Status fetch_values();
  Status lose(Status status, std::string why);
  Status fence_or_throw(std::chrono::milliseconds timeout);

  JobInfo job_;
  std::string error_;
};

Status PmiBoot::put(const std::string& key, std::span<const std::byte> value) noexcept {
  try {
    return stage(client().staged, key, value, error_);
  } catch (...) {
    return Status::no_memory;
  }
}

Status PmiBoot::lose(Status status, std::string why) {
  client().lost = error_ = std::move(why);
  return status;
}

Status PmiBoot::publish_staged() {
  ++client().fences;
  // The first piece says how many there are. A request as a whole stays under the length that the launcher names for a
  // value: Slurm cuts what it reads at that length, and takes the rest for another request.
  const std::string text = to_base64(pack(client().staged));
  client().staged.clear();
  constexpr std::size_t kHead = 12;
  const auto request = [this](std::size_t piece, std::string_view value) {
    return fmt::format("cmd=put kvsname={} key={} value={}", client().space, key_of(job_.rank, piece), value);
  };
  const std::size_t around = request(text.size(), {}).size() + kHead;
  const std::size_t each = client().most - std::min(around, client().most / 2);
  const std::size_t pieces = std::max<std::size_t>(1, (text.size() + each - 1) / each);
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const std::string head = piece == 0 ? fmt::format("{}:", pieces) : std::string();
    Words words;
    const std::string put = request(piece, head + text.substr(std::min(piece * each, text.size()), each));
    const Status status = client().wire.ask(put, "put_result", words, Clock::now() + kPatience);
    if (status != Status::ok) return lose(status, client().wire.error());
  }
  return Status::ok;
}

Result<std::string> PmiBoot::fetch_piece(int rank, std::size_t piece) {
  Words words;
  const std::string get = fmt::format("cmd=get kvsname={} key={}", client().space, key_of(rank, piece));
  const Status status = client().wire.ask(get, "get_result", words, Clock::now() + kPatience);
  if (status == Status::ok) return words["value"];
  return lose(status, fmt::format("what rank {} put did not come: {}", rank, client().wire.error()));
}

Status PmiBoot::fetch_values() {
  for (int rank = 0; rank < job_.size; ++rank) {
    Result<std::string> first = fetch_piece(rank, 0);
    if (!first.ok()) return first.status();
    std::string text = std::move(first).value();
    const std::size_t colon = std::min(text.find(':'), text.size());
    const int pieces = number_in(std::string_view(text).substr(0, colon));
    if (pieces < 1 || pieces > kMaxPieces)
      return lose(Status::io_error, fmt::format("what rank {} put was damaged on its way through the launcher", rank));
    text.erase(0, std::min(colon + 1, text.size()));
    for (int piece = 1; piece < pieces; ++piece) {
      Result<std::string> next = fetch_piece(rank, static_cast<std::size_t>(piece));
      if (!next.ok()) return next.status();
      text += next.value();
    }
    const std::optional<std::vector<std::byte>> bytes = from_base64(text);
    if (!bytes || !unpack(*bytes, client().values[static_cast<std::size_t>(rank)]))
      return lose(Status::io_error, fmt::format("what rank {} put was damaged on its way through the launcher", rank));
  }
  return Status::ok;
}

Status PmiBoot::fence_or_throw(std::chrono::milliseconds timeout) {
  timeout = std::clamp<std::chrono::milliseconds>(timeout, std::chrono::milliseconds(0), kLongestFence);
  const auto deadline = Clock::now() + timeout;
  error_ = client().lost;
  if (!error_.empty()) return Status::peer_lost;
  if (!client().pending) {
    if (const Status status = publish_staged(); status != Status::ok) return status;
    const Status status = client().wire.send("cmd=barrier_in", Clock::now() + kPatience);
    if (status != Status::ok) return lose(status, client().wire.error());
    client().pending = true;
  }
  Words words;
  const Status status = client().wire.receive("barrier_out", words, deadline);
  if (status == Status::timed_out) {
    error_ = fmt::format(
        "the fence took longer than {} ms: a rank from 0 to {} did not reach it, and PMI-1 does not say which one "
        "(BRANT_BOOT_TIMEOUT_MS gives it longer)",
        timeout.count(), job_.size - 1);
    return status;
  }
  if (status != Status::ok) return lose(status, client().wire.error());
  client().pending = false;
  if (const Status fetched = fetch_values(); fetched != Status::ok) return fetched;
  error_.clear();
  return Status::ok;
}

Status PmiBoot::fence(std::chrono::milliseconds timeout) noexcept {
  try {
    return fence_or_throw(timeout);
  } catch (...) {
    return Status::no_memory;
  }
}

Result<std::vector<std::byte>> PmiBoot::get(int rank, const std::string& key) noexcept {
  try {
    error_ = question_fault(rank, job_.size, key);
    if (!error_.empty()) return Status::invalid_argument;
    return find_value(client().values[static_cast<std::size_t>(rank)], rank, key, error_);
  } catch (...) {
    return Status::no_memory;
  }
}

void PmiBoot::abort(int exit_code, const std::string& message) noexcept {
  const int code = abort_exit_code(exit_code);
  // First: the launcher ends this process as it hears of it, and drops what it has not read of its output.
  log::error("the job is aborted with exit code {}: {}", code, message);
  std::this_thread::sleep_for(kTimeToRead);
  try {
    static_cast<void>(client().wire.send(fmt::format("cmd=abort exitcode={}", code), Clock::now() + 2s));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the launcher notices that the process ends
  }
  std::_Exit(code);
}

}  // namespace

std::unique_ptr<Boot> open_pmi_boot() { return open_alone<PmiBoot>(boot_open); }

}  // namespace brant::port
