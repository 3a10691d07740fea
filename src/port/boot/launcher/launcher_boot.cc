#include "port/boot/launcher/launcher_boot.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "base/env.h"
#include "base/log.h"
#include "port/boot/key_values.h"
#include "port/boot/launcher/channel.h"
#include "port/boot/one_at_a_time.h"

namespace brant::port {
namespace {

using launcher::Channel;
using launcher::Reply;
using launcher::Type;
using Clock = std::chrono::steady_clock;

/// The launcher answers within microseconds unless it is stopped or the machine is badly overloaded.
constexpr std::chrono::seconds kAnswerTime{60};
/// After a fence timed out here: how long the launcher may take to say who is missing.
constexpr std::chrono::seconds kCancelTime{2};
/// After abort(): how long the launcher may take to end this process.
constexpr std::chrono::seconds kAbortTime{5};

/// The socket is the process's, not the object's: it stays open so that bootstrap can be opened again. Hence the guard.
std::atomic<bool> socket_in_use{false};

std::optional<int> inherited_socket() noexcept {
  const std::optional<std::int64_t> fd = env_int("BRANT_BOOT_FD");
  if (!fd || *fd < 0 || *fd > 1 << 20) return std::nullopt;
  int domain = 0;
  socklen_t bytes = sizeof domain;
  if (::getsockopt(static_cast<int>(*fd), SOL_SOCKET, SO_DOMAIN, &domain, &bytes) != 0 || domain != AF_UNIX)
    return std::nullopt;
  return static_cast<int>(*fd);
}

int number_from_env(const char* name, int least, int most) {
  const std::optional<std::int64_t> value = env_int(name);
  if (!value || *value < least || *value > most) {
    throw Error(Status::invalid_argument,
                fmt::format("{}='{}' should be a number from {} to {}: `brant run` sets it and a "
                            "program must not change it",
                            name, env(name), least, most));
  }
  return static_cast<int>(*value);
}

JobInfo job_from_env() {
  JobInfo job;
  job.size = number_from_env("BRANT_SIZE", 1, launcher::kMaxRanks);
  job.rank = number_from_env("BRANT_RANK", 0, job.size - 1);
  job.local_size = number_from_env("BRANT_LOCAL_SIZE", 1, job.size);
  job.local_rank = number_from_env("BRANT_LOCAL_RANK", 0, job.local_size - 1);
  job.job_id = env("BRANT_JOB_ID");
  job.launcher = "brant run";
  return job;
}

class LauncherBoot final : public Boot {
 public:
  explicit LauncherBoot(int fd) : job_(job_from_env()), channel_(fd) {
    // Children of this process must not hold the socket: the launcher would not see it close.
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    const std::vector<std::byte> hello =
        encode(launcher::Hello{.rank = job_.rank, .size = job_.size, .job_id = job_.job_id});
    Reply reply;
    const Status status = ask(hello, Type::hello, reply);
    if (status != Status::ok)
      throw Error(status, fmt::format("bootstrap with `brant run` (rank {} of {}): {}", job_.rank, job_.size, error_));
  }

  ~LauncherBoot() override { socket_in_use.store(false, std::memory_order_release); }

  const JobInfo& job() const noexcept override { return job_; }
  Status put(const std::string& key, std::span<const std::byte> value) noexcept override;
  Status fence(std::chrono::milliseconds timeout) noexcept override;
  Result<std::vector<std::byte>> get(int rank, const std::string& key) noexcept override;
  Status spawn(int plan, int line) noexcept override;
  std::string last_error() const override { return error_; }
  void finalize() noexcept override;
  void abort(int exit_code, const std::string& message) noexcept override;

 private:
  /// Values of consecutive ranks that one answer brought. They cannot change before this process's next fence.
  struct Batch {
    std::string key;
    int first_rank = 0;
    std::vector<std::optional<std::vector<std::byte>>> values;
  };

  Status ask(std::span<const std::byte> frame, Type type, Reply& reply);
  Status receive(Type type, std::uint64_t id, Reply& reply, Clock::time_point deadline);
  Status fence_or_throw(std::chrono::milliseconds timeout);
  Result<std::vector<std::byte>> get_or_throw(int rank, const std::string& key);
  Status fetch(int rank, const std::string& key);

  JobInfo job_;
  Channel channel_;
  std::uint64_t fences_ = 0;
  Batch batch_;
  std::string error_;
};

Status LauncherBoot::receive(Type type, std::uint64_t id, Reply& reply, Clock::time_point deadline) {
  while (true) {
    const Status status = channel_.receive(reply, deadline);
    if (status != Status::ok) {
      error_ = channel_.error();
      // Fences have numbers; the other questions do not.
      if (id == 0) channel_.give_up();
      return status;
    }
    // Answers to fences that this process gave up waiting for are dropped here.
    if (reply.to != type || reply.id != id) continue;
    error_ = reply.text;
    return reply.status;
  }
}

Status LauncherBoot::ask(std::span<const std::byte> frame, Type type, Reply& reply) {
  const Clock::time_point deadline = Clock::now() + kAnswerTime;
  const Status status = channel_.send(frame, deadline);
  if (status == Status::ok) return receive(type, 0, reply, deadline);
  error_ = channel_.error();
  return status;
}

Status LauncherBoot::put(const std::string& key, std::span<const std::byte> value) noexcept {
  try {
    error_ = key_value_fault(key, value.size());
    if (!error_.empty()) return Status::invalid_argument;
    Reply reply;
    return ask(encode(launcher::Put{.key = key, .value = value}), Type::put, reply);
  } catch (...) {
    return Status::no_memory;
  }
}

Status LauncherBoot::fence(std::chrono::milliseconds timeout) noexcept {
  try {
    return fence_or_throw(timeout);
  } catch (...) {
    return Status::no_memory;
  }
}

Status LauncherBoot::fence_or_throw(std::chrono::milliseconds timeout) {
  batch_ = {};
  const launcher::Fence question{.id = ++fences_};
  timeout = std::clamp<std::chrono::milliseconds>(timeout, std::chrono::milliseconds(0), kLongestFence);
  const Clock::time_point start = Clock::now();
  Status status = channel_.send(encode(question), start + kAnswerTime);
  Reply reply;
  if (status == Status::ok) {
    status = receive(Type::fence, question.id, reply, start + timeout);
    if (status != Status::timed_out) return status;
    // Either the launcher takes us out of the fence and says who is missing, or the fence was complete after all.
    // Without this question one process could believe in a fence that another has given up.
    status = channel_.send(encode_cancel(question), Clock::now() + kCancelTime);
  }
  if (status == Status::ok) {
    status = receive(Type::fence, question.id, reply, Clock::now() + kCancelTime);
    if (status == Status::timed_out)
      error_ = fmt::format("the fence took longer than {} ms: {}", timeout.count(), error_);
    return status;
  }
  error_ = channel_.error();
  return status;
}

Result<std::vector<std::byte>> LauncherBoot::get(int rank, const std::string& key) noexcept {
  try {
    return get_or_throw(rank, key);
  } catch (...) {
    return Status::no_memory;
  }
}

Result<std::vector<std::byte>> LauncherBoot::get_or_throw(int rank, const std::string& key) {
  const auto in_batch = [&] {
    return batch_.key == key && rank >= batch_.first_rank &&
           rank - batch_.first_rank < static_cast<int>(batch_.values.size());
  };
  if (!in_batch()) {
    const Status status = fetch(rank, key);
    if (status != Status::ok) return status;
    if (!in_batch()) {
      error_ = "the launcher's answer brought no value";
      return Status::peer_rejected;
    }
  }
  const auto& value = batch_.values[static_cast<std::size_t>(rank - batch_.first_rank)];
  if (!value) {
    error_ = fmt::format("rank {} put no value '{}' before a fence of all", rank, key);
    return Status::not_found;
  }
  return *value;
}

Status LauncherBoot::fetch(int rank, const std::string& key) {
  batch_ = {};
  Reply reply;
  const Status status = ask(encode(launcher::Get{.key = key, .rank = rank}), Type::get, reply);
  if (status != Status::ok) return status;
  launcher::ValueRecord record;
  while (launcher::take_record(reply.payload, record)) {
    auto& value = batch_.values.emplace_back();
    if (record.present) value.emplace(record.value.begin(), record.value.end());
  }
  batch_.key = key;
  batch_.first_rank = rank;
  return Status::ok;
}

Status LauncherBoot::spawn(int plan, int line) noexcept {
  try {
    const std::array<int, launcher::kSpawnFiles> files = {plan, line};
    const Clock::time_point deadline = Clock::now() + kAnswerTime;
    const Status status = channel_.send(encode(launcher::Spawn{}), deadline, files);
    Reply reply;
    if (status == Status::ok) return receive(Type::spawn, 0, reply, deadline);
    error_ = channel_.error();
    return status;
  } catch (...) {
    return Status::no_memory;
  }
}

void LauncherBoot::finalize() noexcept {
  try {
    batch_ = {};
    // No answer is needed: a socket keeps what was sent even if this process ends right now.
    if (channel_.send(encode(launcher::Finalize{}), Clock::now() + kAnswerTime) != Status::ok)
      error_ = channel_.error();
  } catch (...) {
    log::warn("bootstrap could not be finalised for lack of memory");
  }
}

void LauncherBoot::abort(int exit_code, const std::string& message) noexcept {
  try {
    const Status status =
        channel_.send(encode(launcher::Abort{.exit_code = exit_code, .text = message}), Clock::now() + kAbortTime);
    if (status == Status::ok) std::this_thread::sleep_for(kAbortTime);
  } catch (...) {
    log::error("the launcher could not be asked to end the job: {}", message);
  }
  std::_Exit(abort_exit_code(exit_code));
}

}  // namespace

bool launcher_present() noexcept { return inherited_socket().has_value(); }

std::unique_ptr<Boot> open_launcher_boot() {
  const std::optional<int> fd = inherited_socket();
  if (!fd) {
    throw Error(Status::not_found,
                fmt::format("BRANT_BOOT_FD='{}' is no open socket of `brant run`: start the program with `brant run -n "
                            "N -- PROGRAM`. A "
                            "program that a rank starts is no rank itself; it runs alone with BRANT_BOOTSTRAP=single",
                            env("BRANT_BOOT_FD")));
  }
  return open_alone<LauncherBoot>(socket_in_use, *fd);
}

}  // namespace brant::port
