#include "port/boot/pmix/pmix_boot.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/env.h"
#include "port/boot/key_value.h"
#include "port/boot/key_values.h"
#include "port/boot/one_at_a_time.h"
#include "port/boot/pmix/fetch.h"
#include "port/boot/pmix/pmix_library.h"

namespace brant::port {
namespace {

using pmix::Code;

/// How long this host's server may take to accept this process: it may have a few hundred to accept at once.
constexpr std::chrono::seconds kInitPatience{20};

/// How long the servers of other hosts may be silent before a process counts as ended: a direct answer takes 5 ms with
/// 64 processes on two cores.
constexpr std::chrono::seconds kPatience{5};
/// The same for naming who is late to a fence, which must not make the time-out itself late.
constexpr std::chrono::milliseconds kQuickLook{200};

/// The client is the process's, not the object's. OpenPMIx 4.2 cannot be initialised again after PMIx_Finalize (it has
/// forgotten the job), so the process stays a client until it exits and only the object is opened again.
std::atomic<bool> boot_open{false};
std::atomic<bool> client_initialised{false};

void finalize_client() noexcept {
  // Without it the launcher reports an abnormal end, whatever the exit code.
  if (client_initialised.exchange(false)) pmix::library().finalize(nullptr, 0);
}

/// An answer on its way. It comes on another thread, perhaps after we stopped waiting, so both sides hold it.
struct PendingAnswer {
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
/// "brant.<fence>.<key>", and with every fence each process publishes "brant.<fence>", the list of the keys it put for
/// it. The list is also the proof that the process reached the fence.
///
/// A fence has two halves. After the first, each process fetches what all put; under PRRTE that asks the process's own
/// server, which forgets a process that left. So nobody comes out of the second half before all have fetched.
struct Client {
  pmix::Proc self{};
  std::shared_ptr<PendingAnswer> pending;
  bool fetched = false;  // the pending fence is the second half
  std::uint64_t fences = 0;
  KeyValues staged;
  std::map<std::pair<pmix::Rank, std::string>, std::vector<std::byte>> values;  // of all, put before a fence
  std::string lost;                                                             // why no fence can succeed any more
};
Client& client() {
  static Client instance;
  return instance;
}

void on_fence_answer(Code code, void* context) {
  const std::unique_ptr<std::shared_ptr<PendingAnswer>> fence(static_cast<std::shared_ptr<PendingAnswer>*>(context));
  (*fence)->answer(code);
}

/// PMIx_Init has no time-out, and waits for ever for a server that is stopped or whose address leads nowhere. So it
/// runs on a thread that can be left alone with it.
Code init_client(const pmix::Library& library, pmix::Proc& self) {
  struct Init : PendingAnswer {
    pmix::Proc self{};
  };
  const auto init = std::make_shared<Init>();
  std::thread([&library, init] { init->answer(library.init(&init->self, nullptr, 0)); }).detach();
  const auto asked = std::chrono::milliseconds(env_int("BRANT_BOOT_TIMEOUT_MS").value_or(60'000));
  const auto patience = std::min<std::chrono::milliseconds>(asked, kInitPatience);
  const std::optional<Code> code = init->wait_until(std::chrono::steady_clock::now() + patience);
  if (code == pmix::kSuccess) self = init->self;
  return code.value_or(pmix::kErrTimeout);
}

/// Where the launcher says that its server is, for error texts.
std::string server_address() {
  for (const char* name :
       {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21", "PMIX_SERVER_URI2"}) {
    if (const std::string_view address = env(name); !address.empty()) return fmt::format("{}={}", name, address);
  }
  return "no address (PMIX_SERVER_URI2 and the like are not set)";
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
      check(init_client(library_, client_.self), "PMIx_Init");
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
  Status start_fence(std::span<const pmix::Info> how);
  /// Every rank's list of keys for the last fence, as far as they came within `patience`.
  std::vector<pmix::Wanted> lists(std::chrono::milliseconds patience);
  Status fetch_values(Code fenced);
  Status timed_out(std::chrono::milliseconds timeout);
  Status fence_or_throw(std::chrono::milliseconds timeout);

  const pmix::Library& library_;
  Client& client_;
  JobInfo job_;
  std::string error_;
};

// Other libraries of the process may use PMIx too; the keys must not meet.
std::string index_key(std::uint64_t fence) { return fmt::format("brant.{}", fence); }
std::string value_key(std::uint64_t fence, const std::string& key) { return fmt::format("brant.{}.{}", fence, key); }

std::vector<std::string> lines_of(std::span<const std::byte> bytes) {
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::string> lines;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

std::string PmixBoot::text(const char* call, Code code) const {
  const char* words = library_.error_string(code);
  return fmt::format("{} of {}: {} ({})", call, library_.file, words != nullptr ? words : "unknown", code);
}

void PmixBoot::check(Code code, const char* call) const {
  if (code == pmix::kSuccess) return;
  const bool silent = code == pmix::kErrUnreachable || code == pmix::kErrTimeout;
  std::string cure;
  if (silent) {
    cure = fmt::format(
        ". No PMIx server answers at {}: it has ended or is stopped, or this process runs in another "
        "network (a container) than the server of its host. Start with mpirun, prterun or srun "
        "--mpi=pmix, or use `brant run`; BRANT_BOOTSTRAP=single runs the process as a job of one",
        server_address());
  }
  throw Error(silent ? Status::peer_rejected : Status::io_error,
              fmt::format("bootstrap with PMIx: {}{}", text(call, code), cure));
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
    return stage(client_.staged, key, value, error_);
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
  std::string index;
  for (const auto& [key, value] : client_.staged) {
    const Code code = publish(value_key(number, key), value);
    if (code != pmix::kSuccess) return failed("PMIx_Put", code);
    index += key + "\n";
  }
  client_.staged.clear();
  Code code = publish(index_key(number), std::as_bytes(std::span(index.data(), index.size())));
  if (code != pmix::kSuccess) return failed("PMIx_Put", code);
  code = library_.commit();
  return code == pmix::kSuccess ? Status::ok : failed("PMIx_Commit", code);
}

Status PmixBoot::start_fence(std::span<const pmix::Info> how) {
  client_.pending = std::make_shared<PendingAnswer>();
  auto context = std::make_unique<std::shared_ptr<PendingAnswer>>(client_.pending);
  const pmix::Proc all = everyone();
  const Code code = library_.fence_nb(&all, 1, how.data(), how.size(), on_fence_answer, context.get());
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

std::vector<pmix::Wanted> PmixBoot::lists(std::chrono::milliseconds patience) {
  std::vector<pmix::Wanted> lists(static_cast<std::size_t>(job_.size));
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    lists[rank] = {.rank = static_cast<pmix::Rank>(rank), .key = index_key(client_.fences), .value = {}};
  pmix::fetch(library_, client_.self, lists, patience);
  return lists;
}

/// The ranks whose value did not come, for error texts; empty if none.
std::string missing_ranks(std::span<const pmix::Wanted> wanted) {
  constexpr std::size_t kMaxNamed = 16;
  std::string names;
  std::size_t count = 0;
  for (const pmix::Wanted& one : wanted) {
    if (one.value) continue;
    if (++count <= kMaxNamed) names += fmt::format("{}rank {}", count == 1 ? "" : ", ", one.rank);
  }
  return count <= kMaxNamed ? names : fmt::format("{} and {} more", names, count - kMaxNamed);
}

Status PmixBoot::fetch_values(Code fenced) {
  // The server gives up a fence once a process that has not reached it has ended; PRRTE calls that success, and what it
  // answers to a later fence depends on the moment. Hence the look at who was there, and the memory.
  const std::vector<pmix::Wanted> lists = this->lists(kPatience);
  const std::string missing = missing_ranks(lists);
  if (fenced != pmix::kSuccess || !missing.empty()) {
    client_.lost = fmt::format("{} ended before this fence ({})", missing.empty() ? "a process" : missing,
                               text("PMIx_Fence", fenced));
    error_ = client_.lost;
    return Status::peer_lost;
  }
  std::vector<pmix::Wanted> values;
  std::vector<std::string> keys;
  for (const pmix::Wanted& list : lists) {
    for (std::string& key : lines_of(*list.value)) {
      values.push_back({.rank = list.rank, .key = value_key(client_.fences, key), .value = {}});
      keys.push_back(std::move(key));
    }
  }
  pmix::fetch(library_, client_.self, values, kPatience);
  if (const std::string lost = missing_ranks(values); !lost.empty()) {
    client_.lost = fmt::format("{} ended while the others fetched what it put", lost);
    error_ = client_.lost;
    return Status::peer_lost;
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    client_.values[{values[i].rank, std::move(keys[i])}] = std::move(*values[i].value);
  return Status::ok;
}

Status PmixBoot::timed_out(std::chrono::milliseconds timeout) {
  if (client_.fetched) {
    error_ = fmt::format(
        "the fence took longer than {} ms: all {} processes reached it, but one ended before it had "
        "fetched what the others put, or is slow",
        timeout.count(), job_.size);
  } else {
    error_ = fmt::format(
        "the fence took longer than {} ms, and {} did not reach it: ended, or slow (BRANT_BOOT_TIMEOUT_MS "
        "gives it longer; srun --kill-on-bad-exit ends a job when a process of it fails)",
        timeout.count(), missing_ranks(lists(kQuickLook)));
  }
  return Status::timed_out;
}

Status PmixBoot::fence_or_throw(std::chrono::milliseconds timeout) {
  timeout = std::clamp<std::chrono::milliseconds>(timeout, std::chrono::milliseconds(0), kLongestFence);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  error_ = client_.lost;
  if (!error_.empty()) return Status::peer_lost;
  const auto keep = [this](Status status) {
    if (status != Status::ok) client_.lost = error_;  // half of this process's values may be published
    return status;
  };
  // PMIx cannot take back a fence. One that timed out here goes on in the server, and the next call waits for it again.
  if (!client_.pending) {
    const pmix::Info collect = pmix::directive(pmix::kCollectData);
    Status status = keep(publish_staged());
    if (status == Status::ok) status = keep(start_fence({&collect, 1}));
    if (status != Status::ok) return status;
  }
  if (!client_.fetched) {
    const std::optional<Code> code = client_.pending->wait_until(deadline);
    if (!code) return timed_out(timeout);
    client_.pending.reset();
    Status status = fetch_values(*code);
    if (status == Status::ok) status = keep(start_fence({}));
    if (status != Status::ok) return status;
    client_.fetched = true;
  }
  // A process that ended in between reached this fence, and its values are here: the next fence will miss it.
  if (!client_.pending->wait_until(deadline)) return timed_out(timeout);
  client_.pending.reset();
  client_.fetched = false;
  error_.clear();
  return Status::ok;
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
    error_ = question_fault(rank, job_.size, key);
    if (!error_.empty()) return Status::invalid_argument;
    const auto found = client_.values.find({static_cast<pmix::Rank>(rank), key});
    if (found != client_.values.end()) return found->second;
    error_ = fmt::format("rank {} put no value '{}' before a fence of all", rank, key);
    return Status::not_found;
  } catch (...) {
    return Status::no_memory;
  }
}

void PmixBoot::abort(int exit_code, const std::string& message) noexcept {
  library_.abort(abort_exit_code(exit_code), message.c_str(), nullptr, 0);
  std::_Exit(abort_exit_code(exit_code));
}

}  // namespace

std::unique_ptr<Boot> open_pmix_boot() { return open_alone<PmixBoot>(boot_open); }

}  // namespace brant::port
