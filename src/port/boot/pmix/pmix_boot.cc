#include "port/boot/pmix/pmix_boot.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "base/env.h"
#include "port/boot/key_value.h"
#include "port/boot/pmix/pmix_library.h"

namespace brant::port {
namespace {

using pmix::Code;

/// Keeps the arithmetic of deadlines from overflowing.
constexpr std::chrono::hours kLongestFence{24 * 365};

/// Values that wait for a fence; the server holds every process's at once.
constexpr std::size_t kMaxStagedBytes = std::size_t{64} << 20;

/// The client is the process's, not the object's. OpenPMIx 4.2 cannot be initialised again after PMIx_Finalize (it has
/// forgotten the job), so the process stays a client until it exits and only the object is opened again.
std::atomic<bool> boot_open{false};
std::atomic<bool> client_initialised{false};

void finalize_client() noexcept {
  // Without it the launcher reports an abnormal end, whatever the exit code.
  if (client_initialised.exchange(false)) pmix::library().finalize(nullptr, 0);
}

/// A fence on its way. PMIx answers on a thread of its own, perhaps after we stopped waiting, so both sides hold it.
struct PendingFence {
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<Code> code;

  void answer(Code result) {
    const std::lock_guard lock(mutex);
    code = result;
    answered.notify_all();
  }
  std::optional<Code> wait_until(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex);
    answered.wait_until(lock, deadline, [&] { return code.has_value(); });
    return code;
  }
};

/// What the process remembers between two openings.
///
/// PMIx loses a value when its key is put again after a fence. So no PMIx key is used twice: a value travels under
/// "brant.<fence>.<key>", and with every fence each process publishes "brant.<fence>", the list of its keys and in
/// which fence each was put last. The list is also the proof that the process reached the fence.
struct Client {
  pmix::Proc self{};
  std::shared_ptr<PendingFence> pending;
  std::uint64_t fences = 0;
  std::map<std::string, std::vector<std::byte>> staged;
  std::map<std::string, std::uint64_t> put_in;
  std::string lost;  // why no fence can succeed any more
};
Client& client() {
  static Client instance;
  return instance;
}

void on_fence_answer(Code code, void* context) {
  auto* fence = static_cast<std::shared_ptr<PendingFence>*>(context);
  (*fence)->answer(code);
  delete fence;
}

Status status_of(Code code) noexcept {
  switch (code) {
    case pmix::kSuccess: return Status::ok;
    case pmix::kErrTimeout: return Status::timed_out;
    case pmix::kErrNotFound: return Status::not_found;
    case pmix::kErrUnreachable:
    case pmix::kErrLostConnection: return Status::peer_lost;
    default: return Status::io_error;
  }
}

class PmixBoot final : public Boot {
 public:
  PmixBoot() : library_(pmix::library()), client_(client()) {
    if (!client_initialised.load()) {
      check(library_.init(&client_.self, nullptr, 0), "PMIx_Init");
      client_initialised.store(true);
      std::atexit(finalize_client);
    }
    job_.rank = static_cast<int>(client_.self.rank);
    job_.size = number(everyone(), pmix::kJobSize);
    job_.local_rank = number(client_.self, pmix::kLocalRank);
    job_.local_size = number(everyone(), pmix::kLocalSize);
    job_.job_id = client_.self.job;
    job_.launcher = "pmix";
  }

  ~PmixBoot() override { boot_open.store(false, std::memory_order_release); }

  const JobInfo& job() const noexcept override { return job_; }
  Status put(const std::string& key, std::span<const std::byte> value) noexcept override;
  Status fence(std::chrono::milliseconds timeout) noexcept override;
  Result<std::vector<std::byte>> get(int rank, const std::string& key) noexcept override;
  std::string last_error() const override { return error_; }
  void finalize() noexcept override {}  // see finalize_client()
  void abort(int exit_code, const std::string& message) noexcept override;

 private:
  pmix::Proc proc(pmix::Rank rank) const noexcept {
    pmix::Proc result = client_.self;
    result.rank = rank;
    return result;
  }
  pmix::Proc everyone() const noexcept { return proc(pmix::kRankWildcard); }

  std::string text(const char* call, Code code) const;
  void check(Code code, const char* call) const;
  int number(const pmix::Proc& of, const char* key) const;
  Status failed(const char* call, Code code);
  Code publish(const std::string& pmix_key, std::span<const std::byte> value);
  Status publish_staged();
  Result<std::vector<std::byte>> fetch(int rank, const std::string& pmix_key);
  Status start_fence();
  /// The ranks that did not reach the last fence; empty if none.
  std::string missing_ranks();
  Status fence_or_throw(std::chrono::milliseconds timeout);
  Result<std::vector<std::byte>> get_or_throw(int rank, const std::string& key);

  const pmix::Library& library_;
  Client& client_;
  JobInfo job_;
  std::string error_;
};

// Other libraries of the process may use PMIx too; the keys must not meet.
std::string index_key(std::uint64_t fence) { return fmt::format("brant.{}", fence); }
std::string value_key(std::uint64_t fence, const std::string& key) { return fmt::format("brant.{}.{}", fence, key); }

/// In which fence `key` was put last, from lines of "key fence"; 0 if never.
std::uint64_t find_in_index(std::string_view index, const std::string& key) {
  while (!index.empty()) {
    const std::size_t end = index.find('\n');
    const std::string_view line = index.substr(0, end);
    index = end == std::string_view::npos ? std::string_view{} : index.substr(end + 1);
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    std::uint64_t fence = 0;
    std::from_chars(line.data() + key.size() + 1, line.data() + line.size(), fence);
    return fence;
  }
  return 0;
}

std::string PmixBoot::text(const char* call, Code code) const {
  const char* words = library_.error_string(code);
  return fmt::format("{} of {}: {} ({})", call, library_.file, words != nullptr ? words : "unknown", code);
}

void PmixBoot::check(Code code, const char* call) const {
  if (code == pmix::kSuccess) return;
  throw Error(
      code == pmix::kErrUnreachable ? Status::peer_rejected : Status::io_error,
      fmt::format("bootstrap with PMIx: {}{}", text(call, code),
                  code == pmix::kErrUnreachable
                      ? ". No PMIx server answers: start with mpirun, prterun or srun --mpi=pmix, or use `brant run`"
                      : ""));
}

int PmixBoot::number(const pmix::Proc& of, const char* key) const {
  pmix::Value* value = nullptr;
  check(library_.get(&of, key, nullptr, 0, &value), key);
  const auto type = value->type;
  const auto result = static_cast<int>(type == pmix::kTypeUint16 ? value->data.uint16 : value->data.uint32);
  std::free(value);
  if (type != pmix::kTypeUint16 && type != pmix::kTypeUint32) {
    throw Error(Status::version_mismatch,
                fmt::format("bootstrap with PMIx: the server's {} has the unknown type {}", key, type));
  }
  return result;
}

Status PmixBoot::put(const std::string& key, std::span<const std::byte> value) noexcept {
  try {
    error_ = key_value_fault(key, value.size());
    if (!error_.empty()) return Status::invalid_argument;
    std::size_t bytes = value.size();
    for (const auto& [other, staged] : client_.staged) bytes += other == key ? 0 : staged.size();
    if (bytes > kMaxStagedBytes) {
      error_ = fmt::format("more than {} bytes were put before one fence", kMaxStagedBytes);
      return Status::limit_reached;
    }
    client_.staged[key].assign(value.begin(), value.end());
    return Status::ok;
  } catch (...) {
    return Status::no_memory;
  }
}

Code PmixBoot::publish(const std::string& pmix_key, std::span<const std::byte> value) {
  pmix::Value object{};
  object.type = pmix::kTypeByteObject;
  // PMIx copies it and does not write to it; its interface only lacks the const.
  object.data.bytes = {.bytes = const_cast<char*>(reinterpret_cast<const char*>(value.data())), .size = value.size()};
  return library_.put(pmix::kScopeGlobal, pmix_key.c_str(), &object);
}

Status PmixBoot::failed(const char* call, Code code) {
  error_ = text(call, code);
  return status_of(code);
}

Status PmixBoot::publish_staged() {
  const std::uint64_t number = ++client_.fences;
  for (const auto& [key, value] : client_.staged) {
    const Code code = publish(value_key(number, key), value);
    if (code != pmix::kSuccess) return failed("PMIx_Put", code);
    client_.put_in[key] = number;
  }
  client_.staged.clear();
  std::string index;
  for (const auto& [key, fence] : client_.put_in) index += fmt::format("{} {}\n", key, fence);
  Code code = publish(index_key(number), std::as_bytes(std::span(index.data(), index.size())));
  if (code != pmix::kSuccess) return failed("PMIx_Put", code);
  code = library_.commit();
  return code == pmix::kSuccess ? Status::ok : failed("PMIx_Commit", code);
}

Status PmixBoot::start_fence() {
  const Status status = publish_staged();
  if (status != Status::ok) return status;
  client_.pending = std::make_shared<PendingFence>();
  auto context = std::make_unique<std::shared_ptr<PendingFence>>(client_.pending);
  const pmix::Proc all = everyone();
  const pmix::Info collect = pmix::directive(pmix::kCollectData);
  const Code code = library_.fence_nb(&all, 1, &collect, 1, on_fence_answer, context.get());
  if (code == pmix::kSuccess) {
    static_cast<void>(context.release());  // now the callback's
    return Status::ok;
  }
  if (code == pmix::kOperationSucceeded) {
    client_.pending->answer(pmix::kSuccess);
    return Status::ok;
  }
  client_.pending.reset();
  return failed("PMIx_Fence_nb", code);
}

std::string PmixBoot::missing_ranks() {
  constexpr int kMaxNamed = 16;
  std::string names;
  int count = 0;
  for (int rank = 0; rank < job_.size && count < kMaxNamed; ++rank) {
    if (fetch(rank, index_key(client_.fences)).ok()) continue;
    names += fmt::format("{}rank {}", count++ == 0 ? "" : ", ", rank);
  }
  return names;
}

Status PmixBoot::fence_or_throw(std::chrono::milliseconds timeout) {
  timeout = std::clamp<std::chrono::milliseconds>(timeout, std::chrono::milliseconds(0), kLongestFence);
  error_ = client_.lost;
  if (!error_.empty()) return Status::peer_lost;
  // PMIx cannot take back a fence. One that timed out here goes on in the server, and the next call waits for it again.
  if (!client_.pending) {
    const Status status = start_fence();
    if (status != Status::ok) {
      client_.lost = error_;  // half of this process's values may be published
      return status;
    }
  }
  const std::optional<Code> code = client_.pending->wait_until(std::chrono::steady_clock::now() + timeout);
  if (!code) {
    error_ = fmt::format("the fence took longer than {} ms; PMIx does not say which of the {} processes are missing",
                         timeout.count(), job_.size);
    return Status::timed_out;
  }
  client_.pending.reset();
  // The server gives up a fence once a process that has not reached it has ended; PRRTE calls that success, and what it
  // answers to a later fence depends on the moment. Hence the look at who was there, and the memory.
  const std::string missing = missing_ranks();
  error_.clear();
  if (*code == pmix::kSuccess && missing.empty()) return Status::ok;
  client_.lost = fmt::format("{} ended before this fence ({})", missing.empty() ? "a process" : missing,
                             text("PMIx_Fence", *code));
  error_ = client_.lost;
  return Status::peer_lost;
}

Status PmixBoot::fence(std::chrono::milliseconds timeout) noexcept {
  try {
    return fence_or_throw(timeout);
  } catch (...) {
    return Status::no_memory;
  }
}

Result<std::vector<std::byte>> PmixBoot::get(int rank, const std::string& key) noexcept {
  try {
    return get_or_throw(rank, key);
  } catch (...) {
    return Status::no_memory;
  }
}

Result<std::vector<std::byte>> PmixBoot::fetch(int rank, const std::string& pmix_key) {
  const pmix::Proc owner = proc(static_cast<pmix::Rank>(rank));
  pmix::Value* value = nullptr;
  Code code = pmix::kErrNotFound;
  // First what this host's server has; then it asks the owner's, since PRRTE's fence does not bring what ranks of other
  // hosts put. With either directive a key that nobody put is answered; without one the server would wait for it.
  for (const char* way : {pmix::kImmediate, pmix::kRefreshCache}) {
    const pmix::Info how = pmix::directive(way);
    code = library_.get(&owner, pmix_key.c_str(), &how, 1, &value);
    if (code == pmix::kSuccess) break;
  }
  if (code != pmix::kSuccess) return failed("PMIx_Get", code);
  const std::unique_ptr<pmix::Value, decltype(&std::free)> owned(value, &std::free);
  if (value->type != pmix::kTypeByteObject) {
    error_ = fmt::format("the PMIx value '{}' of rank {} has the type {}, not the bytes that brant puts", pmix_key,
                         rank, value->type);
    return Status::peer_rejected;
  }
  const std::unique_ptr<char, decltype(&std::free)> bytes(value->data.bytes.bytes, &std::free);
  const auto* first = reinterpret_cast<const std::byte*>(bytes.get());
  return std::vector<std::byte>(first, first + value->data.bytes.size);
}

Result<std::vector<std::byte>> PmixBoot::get_or_throw(int rank, const std::string& key) {
  error_ = rank >= 0 && rank < job_.size ? key_value_fault(key, 0)
                                         : fmt::format("there is no rank {} in a job of {}", rank, job_.size);
  if (!error_.empty()) return Status::invalid_argument;
  const std::uint64_t complete = client_.fences - (client_.pending ? 1 : 0);
  std::uint64_t put_in = 0;
  if (complete > 0) {
    const Result<std::vector<std::byte>> index = fetch(rank, index_key(complete));
    if (!index.ok()) return index.status();
    put_in = find_in_index({reinterpret_cast<const char*>(index.value().data()), index.value().size()}, key);
  }
  if (put_in == 0) {
    error_ = fmt::format("rank {} put no value '{}' before a fence of all", rank, key);
    return Status::not_found;
  }
  return fetch(rank, value_key(put_in, key));
}

void PmixBoot::abort(int exit_code, const std::string& message) noexcept {
  library_.abort(abort_exit_code(exit_code), message.c_str(), nullptr, 0);
  std::_Exit(abort_exit_code(exit_code));
}

}  // namespace

bool pmix_server_present() noexcept { return !env("PMIX_NAMESPACE").empty() && !env("PMIX_RANK").empty(); }

std::unique_ptr<Boot> open_pmix_boot() {
  if (boot_open.exchange(true, std::memory_order_acquire)) {
    throw Error(Status::limit_reached, "the bootstrap of this process is already open: one at a time");
  }
  try {
    return std::make_unique<PmixBoot>();
  } catch (...) {
    boot_open.store(false, std::memory_order_release);
    throw;
  }
}

}  // namespace brant::port
