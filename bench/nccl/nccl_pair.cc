#include "bench/nccl/nccl_pair.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::bench::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kPollsPerLook = 1u << 10;  // at the clock

/// "unhandled cuda error: ...", with the details that newer versions keep.
std::string text_of(const Library& nccl, Outcome outcome) {
  const char* what = nccl.get_error_string(outcome);
  const char* details = nccl.get_last_error != nullptr ? nccl.get_last_error(nullptr) : nullptr;
  std::string text = what != nullptr ? what : fmt::format("result {}", static_cast<int>(outcome));
  if (details != nullptr && *details != '\0') text += fmt::format(": {}", details);
  return text;
}

[[noreturn]] void fail(const Library& nccl, Outcome outcome, const std::string& call) {
  throw Error(Status::io_error, fmt::format("NCCL {} ({}): {} failed: {} (NCCL_DEBUG=WARN says more)", nccl.version,
                                            nccl.path, call, text_of(nccl, outcome)));
}

/// What the thread that opens a communicator and the one that waits for it share; whoever is last lets it go.
struct Opening {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  Outcome outcome = Outcome::success;
  Communicator* comm = nullptr;
  std::string text;  ///< NCCL keeps its last error for each thread.
};

}  // namespace

UniqueId make_unique_id() {
  const Library& nccl = library();
  UniqueId id{};
  const Outcome outcome = nccl.get_unique_id(&id);
  if (outcome != Outcome::success) fail(nccl, outcome, "ncclGetUniqueId");
  return id;
}

Pair::Pair(port::Streams& streams, port::Stream* stream, const Ends& ends)
    : nccl_(library()), streams_(streams), stream_(stream), side_(ends.side), patience_(ends.patience) {
  open(ends);
}

/// In a thread, since NCCL waits for the other side without a limit. (Its communicators that do not block would make
/// every later call another one than a program's usual.)
void Pair::open(const Ends& ends) {
  const auto opening = std::make_shared<Opening>();
  std::thread thread([opening, &nccl = nccl_, &streams = streams_, stream = stream_, ends] {
    // NCCL takes the device that is current for the thread; any call of ours makes it this process's.
    static_cast<void>(streams.poll(stream));
    Communicator* comm = nullptr;
    const Outcome outcome = nccl.comm_init_rank(&comm, 2, ends.id, ends.side);
    std::string text = outcome == Outcome::success ? std::string() : text_of(nccl, outcome);
    const std::lock_guard lock(opening->mutex);
    opening->outcome = outcome;
    opening->comm = comm;
    opening->text = std::move(text);
    opening->done = true;
    opening->ended.notify_all();
  });
  std::unique_lock lock(opening->mutex);
  if (!opening->ended.wait_for(lock, patience_, [&] { return opening->done; })) {
    lock.unlock();
    thread.detach();  // it cannot be called back
    throw Error(Status::timed_out,
                fmt::format("NCCL {} ({}): ncclCommInitRank of side {} of 2 did not end within {} ms: does the other "
                            "process run, and may the two reach each other (NCCL_SOCKET_IFNAME)?",
                            nccl_.version, nccl_.path, side_, patience_.count()));
  }
  lock.unlock();
  thread.join();
  if (opening->outcome != Outcome::success) {
    throw Error(Status::io_error,
                fmt::format("NCCL {} ({}): ncclCommInitRank of side {} of 2 failed: {} (NCCL_DEBUG=WARN says more)",
                            nccl_.version, nccl_.path, side_, opening->text));
  }
  comm_ = opening->comm;
}

Pair::~Pair() {
  // To destroy is to wait for the other side, which after a failure nobody promises to come.
  static_cast<void>(given_up_ || std::uncaught_exceptions() > 0 ? nccl_.comm_abort(comm_) : nccl_.comm_destroy(comm_));
}

void Pair::check(Outcome outcome, const char* call, std::size_t bytes) {
  if (outcome == Outcome::success) return;
  given_up_ = true;
  fail(nccl_, outcome, fmt::format("{} of {} bytes on side {} of 2", call, bytes, side_));
}

void Pair::send(const void* data, std::size_t bytes) {
  check(nccl_.send(data, std::max<std::size_t>(bytes, 1), DataType::bytes, 1 - side_, comm_, stream_), "ncclSend",
        bytes);
}

void Pair::recv(void* data, std::size_t bytes) {
  check(nccl_.recv(data, std::max<std::size_t>(bytes, 1), DataType::bytes, 1 - side_, comm_, stream_), "ncclRecv",
        bytes);
}

void Pair::together(const std::function<void()>& transfers) {
  check(nccl_.group_start(), "ncclGroupStart", 0);
  try {
    transfers();
  } catch (...) {
    static_cast<void>(nccl_.group_end());  // an open group would hold back the end of the pair
    throw;
  }
  check(nccl_.group_end(), "ncclGroupEnd", 0);
}

void Pair::wait() {
  Clock::time_point give_up{};
  Status status = streams_.poll(stream_);
  for (unsigned polls = 0; status == Status::in_progress; ++polls, status = streams_.poll(stream_)) {
    if (polls % kPollsPerLook != kPollsPerLook - 1) continue;
    const Clock::time_point now = Clock::now();
    if (give_up == Clock::time_point{}) give_up = now + patience_;
    if (now < give_up) continue;
    given_up_ = true;
    throw Error(
        Status::timed_out,
        fmt::format("NCCL {} ({}): side {} of 2 has waited {} ms for its transfers; is the other process alive?",
                    nccl_.version, nccl_.path, side_, patience_.count()));
  }
  if (status == Status::ok) return;
  given_up_ = true;
  throw Error(status, fmt::format("NCCL {} ({}): the stream of side {} of 2 failed: {}", nccl_.version, nccl_.path,
                                  side_, status_text(status)));
}

}  // namespace brant::bench::nccl
