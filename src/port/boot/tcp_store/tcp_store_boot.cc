#include "port/boot/tcp_store/tcp_store_boot.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/env.h"
#include "base/host_name.h"
#include "port/boot/key_values.h"
#include "port/boot/one_at_a_time.h"
#include "port/boot/tcp_store/client.h"
#include "port/boot/tcp_store/parcel.h"
#include "port/boot/tcp_store/rendezvous.h"

namespace brant::port {
namespace {

using namespace std::chrono_literals;
using tcp_store::Client;
using tcp_store::Rendezvous;
using Clock = std::chrono::steady_clock;

constexpr auto kConnectPatience = 20s;
/// A store answers within a millisecond unless it is stopped or a thousand processes ask at once.
constexpr auto kAnswerTime = 20s;
/// A fence that was given up after less does not ask who is missing.
constexpr auto kWorthAsking = 100ms;
/// Of so many processes one question brings what they put, as bootstrap reads everybody's record in order of rank.
constexpr int kRanksAtOnce = 32;

std::atomic<bool> boot_open{false};

/// What the process remembers between two openings: fences have numbers, and no key of the store is used twice.
struct Memory {
  std::string of;  ///< Which job.
  std::uint64_t fences = 0;
  bool pending = false;  ///< The last of them is under way.
  KeyValues staged;
  std::map<int, std::uint64_t> read;  ///< Up to which fence what a rank put was fetched.
  std::map<int, KeyValues> values;
  std::string self;  ///< Tells this process from all others.
};

Memory& memory_of(const Rendezvous& meeting) {
  static Memory memory;
  std::string of = fmt::format("{}:{}/{}", meeting.host, meeting.port, meeting.prefix);
  if (memory.of != of) {
    memory = Memory{};
    memory.of = std::move(of);
  }
  return memory;
}

std::string parcel_key(std::uint64_t fence, int rank, std::size_t piece) {
  return piece == 0 ? fmt::format("fence/{}/{}", fence, rank) : fmt::format("fence/{}/{}/{}", fence, rank, piece);
}

class TcpStoreBoot final : public Boot {
 public:
  TcpStoreBoot();
  ~TcpStoreBoot() override { boot_open.store(false, std::memory_order_release); }

  const JobInfo& job() const noexcept override { return meeting_.job; }
  Status put(const std::string& key, std::span<const std::byte> value) noexcept override;
  Status fence(std::chrono::milliseconds timeout) noexcept override;
  Result<std::vector<std::byte>> get(int rank, const std::string& key) noexcept override;
  std::string last_error() const override { return error_; }
  void finalize() noexcept override {}
  void abort(int exit_code, const std::string& message) noexcept override;

 private:
  std::string place() const {
    return fmt::format("the store of torchrun at {}:{} (MASTER_ADDR, MASTER_PORT)", meeting_.host, meeting_.port);
  }
  [[noreturn]] void refuse(Status status, const std::string& why) const;
  std::string set_once(const std::string& key, std::string value);
  void agree_on_job();
  void take_rank();

  Status failed(Status status, const std::string& doing);
  Status arrive();
  Status timed_out(std::chrono::milliseconds timeout);
  Status fence_or_throw(std::chrono::milliseconds timeout);
  Status fetch(int rank);
  Status fetch_parcel(int rank, std::uint64_t fence, tcp_store::Bytes first);

  Rendezvous meeting_;
  Memory& memory_;
  Client client_;
  std::string error_;
};

TcpStoreBoot::TcpStoreBoot()
    : meeting_(tcp_store::rendezvous_from_environment()), memory_(memory_of(meeting_)), client_(meeting_.prefix) {
  const auto asked = std::chrono::milliseconds(env_int("BRANT_BOOT_TIMEOUT_MS").value_or(60'000));
  const auto patience = std::min<std::chrono::milliseconds>(asked, kConnectPatience);
  const Status status = client_.connect(meeting_.host, meeting_.port, Clock::now() + patience);
  if (status != Status::ok) {
    refuse(status,
           fmt::format("it cannot be reached within {} ms ({}). An agent of torchrun keeps it: it has ended, or "
                       "a firewall or another network (a container) lies between",
                       patience.count(), client_.error()));
  }
  agree_on_job();
  take_rank();
}

void TcpStoreBoot::refuse(Status status, const std::string& why) const {
  throw Error(status, fmt::format("bootstrap with {}, rank {} of {}: {}. `brant run` starts programs without torchrun; "
                                  "BRANT_BOOTSTRAP=single runs the process as a job of one",
                                  place(), meeting_.job.rank, meeting_.job.size, why));
}

std::string TcpStoreBoot::set_once(const std::string& key, std::string value) {
  const auto patience = std::chrono::milliseconds(env_int("BRANT_BOOT_TIMEOUT_MS").value_or(60'000));
  const Status status =
      client_.set_once(key, value, Clock::now() + std::min<std::chrono::milliseconds>(patience, kAnswerTime));
  if (status == Status::ok) return value;
  refuse(status,
         fmt::format("key '{}{}': {}. What listens there is perhaps no TCPStore, or one of a PyTorch before 2.1",
                     meeting_.prefix, key, client_.error()));
}

void TcpStoreBoot::agree_on_job() {
  const std::string size = std::to_string(meeting_.job.size);
  const std::string agreed = set_once("job", fmt::format("{} {}", size, random_job_id()));
  const std::size_t blank = agreed.find(' ');
  if (blank == std::string::npos)
    refuse(Status::peer_rejected,
           fmt::format("key '{}job' is '{}', which brant did not write", meeting_.prefix, agreed));
  if (agreed.substr(0, blank) != size) {
    refuse(Status::invalid_argument, fmt::format("WORLD_SIZE is {} here and {} in the process that came first: all "
                                                 "processes of a run (TORCHELASTIC_RUN_ID) need the same",
                                                 size, agreed.substr(0, blank)));
  }
  meeting_.job.job_id = fmt::format("torchrun-{}", agreed.substr(blank + 1));
}

void TcpStoreBoot::take_rank() {
  if (memory_.self.empty())
    memory_.self = fmt::format("process {} of host {}, {}", ::getpid(), host_name(), random_job_id());
  const std::string owner = set_once(fmt::format("rank/{}", meeting_.job.rank), memory_.self);
  if (owner == memory_.self) return;
  refuse(Status::invalid_argument,
         fmt::format("RANK={} was taken before by {}: two processes have the same RANK, or this run reads what an "
                     "earlier one left in the store (its name is TORCHELASTIC_RUN_ID, torchrun's --rdzv-id, and its "
                     "attempt TORCHELASTIC_RESTART_COUNT)",
                     meeting_.job.rank, owner.substr(0, owner.find(','))));
}

Status TcpStoreBoot::failed(Status status, const std::string& doing) {
  error_ = fmt::format("{}: {}, rank {}: {}. An agent of torchrun keeps it: if it has ended, all is over", place(),
                       doing, meeting_.job.rank, client_.error());
  return status;
}

Status TcpStoreBoot::put(const std::string& key, std::span<const std::byte> value) noexcept {
  try {
    return stage(memory_.staged, key, value, error_);
  } catch (...) {
    return Status::no_memory;
  }
}

/// Publishes what was put and is counted. Whoever comes last opens the gate: a key that all others wait for.
Status TcpStoreBoot::arrive() {
  const Clock::time_point deadline = Clock::now() + kAnswerTime;
  const std::uint64_t fence = memory_.fences + 1;
  const auto pieces = tcp_store::pack(memory_.staged, Client::kMaxValue);
  Status status = Status::ok;
  // The first piece comes last: it says that all are there.
  for (std::size_t piece = pieces.size(); status == Status::ok && piece-- > 0;)
    status = client_.set(parcel_key(fence, meeting_.job.rank, piece), pieces[piece], deadline);
  std::int64_t arrived = 0;
  if (status == Status::ok) status = client_.increment(fmt::format("fence/{}/arrived", fence), arrived, deadline);
  if (status == Status::ok && arrived >= meeting_.job.size)
    status = client_.set(fmt::format("fence/{}/open", fence), {}, deadline);
  if (status != Status::ok) return failed(status, fmt::format("key 'fence/{}'", fence));
  memory_.fences = fence;
  memory_.pending = true;
  memory_.staged.clear();
  return Status::ok;
}

Status TcpStoreBoot::timed_out(std::chrono::milliseconds timeout) {
  error_ = fmt::format("the fence took longer than {} ms", timeout.count());
  if (timeout < kWorthAsking) return Status::timed_out;
  std::vector<std::string> keys;
  for (int rank = 0; rank < meeting_.job.size; ++rank) keys.push_back(parcel_key(memory_.fences, rank, 0));
  std::vector<bool> present;
  const Status status = client_.check(keys, present, Clock::now() + kAnswerTime);
  if (status != Status::ok) return failed(status, "asking who reached the fence");
  constexpr int kMaxNamed = 16;
  std::string names;
  int missing = 0;
  for (int rank = 0; rank < meeting_.job.size; ++rank) {
    if (present[static_cast<std::size_t>(rank)]) continue;
    if (++missing <= kMaxNamed) names += fmt::format("{}rank {}", missing == 1 ? "" : ", ", rank);
  }
  if (missing == 0) return Status::ok;  // the last to come ended before it opened the gate
  if (missing > kMaxNamed) names += fmt::format(" and {} more", missing - kMaxNamed);
  error_ += fmt::format(
      ", and {} did not reach it: ended, or slow (BRANT_BOOT_TIMEOUT_MS gives it longer). They meet in "
      "{}, keys '{}...'",
      names, place(), meeting_.prefix);
  return Status::timed_out;
}

Status TcpStoreBoot::fence_or_throw(std::chrono::milliseconds timeout) {
  timeout = std::clamp<std::chrono::milliseconds>(timeout, 0ms, kLongestFence);
  const Clock::time_point deadline = Clock::now() + timeout;
  error_.clear();
  // A fence cannot be taken back: one that timed out goes on, and the next call waits for it again.
  if (!memory_.pending) {
    const Status status = arrive();
    if (status != Status::ok) return status;
  }
  Status status = client_.wait(fmt::format("fence/{}/open", memory_.fences), deadline);
  if (status == Status::timed_out) {
    status = timed_out(timeout);
  } else if (status != Status::ok) {
    return failed(status, fmt::format("waiting for key 'fence/{}/open'", memory_.fences));
  }
  if (status == Status::ok) memory_.pending = false;
  return status;
}

Status TcpStoreBoot::fence(std::chrono::milliseconds timeout) noexcept {
  try {
    return fence_or_throw(timeout);
  } catch (...) {
    return Status::no_memory;
  }
}

Status TcpStoreBoot::fetch_parcel(int rank, std::uint64_t fence, tcp_store::Bytes first) {
  std::size_t more = 0;
  std::vector<tcp_store::Bytes> pieces{std::move(first)};
  bool good = tcp_store::pieces_after(pieces.front(), more) && more <= 2 * kMaxStagedBytes / Client::kMaxValue;
  for (std::size_t piece = 1; good && piece <= more; ++piece) {
    const std::array key{parcel_key(fence, rank, piece)};
    std::vector<tcp_store::Bytes> values;
    const Status status = client_.get(key, values, Clock::now() + kAnswerTime);
    if (status != Status::ok) return failed(status, fmt::format("key '{}'", key.front()));
    pieces.push_back(std::move(values.front()));
  }
  good = good && tcp_store::unpack(pieces, memory_.values[rank]);
  if (good) return Status::ok;
  error_ = fmt::format("{}: key '{}' holds what brant did not write", place(), parcel_key(fence, rank, 0));
  return Status::peer_rejected;
}

/// Brings what this rank, and those after it, put before fences that are over.
Status TcpStoreBoot::fetch(int rank) {
  const std::uint64_t over = memory_.fences - (memory_.pending ? 1 : 0);
  while (memory_.read[rank] < over) {
    const std::uint64_t fence = memory_.read[rank] + 1;
    std::vector<int> ranks;
    std::vector<std::string> keys;
    for (int one = rank; one < std::min(meeting_.job.size, rank + kRanksAtOnce); ++one) {
      if (memory_.read[one] + 1 != fence) continue;
      ranks.push_back(one);
      keys.push_back(parcel_key(fence, one, 0));
    }
    std::vector<tcp_store::Bytes> first;
    Status status = client_.get(keys, first, Clock::now() + kAnswerTime);
    if (status != Status::ok) return failed(status, fmt::format("key '{}'", keys.front()));
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      status = fetch_parcel(ranks[i], fence, std::move(first[i]));
      if (status != Status::ok) return status;
      memory_.read[ranks[i]] = fence;
    }
  }
  return Status::ok;
}

Result<std::vector<std::byte>> TcpStoreBoot::get(int rank, const std::string& key) noexcept {
  try {
    error_ = question_fault(rank, meeting_.job.size, key);
    if (!error_.empty()) return Status::invalid_argument;
    const Status status = fetch(rank);
    if (status != Status::ok) return status;
    return find_value(memory_.values[rank], rank, key, error_);
  } catch (...) {
    return Status::no_memory;
  }
}

void TcpStoreBoot::abort(int exit_code, const std::string& message) noexcept {
  // The agent of this host ends its other processes when it sees this one fail, and the agents of other hosts theirs.
  abort_alone(exit_code, message);
}

}  // namespace

std::unique_ptr<Boot> open_tcp_store_boot() { return open_alone<TcpStoreBoot>(boot_open); }

}  // namespace brant::port
