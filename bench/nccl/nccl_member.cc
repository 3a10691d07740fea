#include "bench/nccl/nccl_member.h"

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

Member::Member(port::Streams& streams, port::Stream* stream, const Place& place)
    : nccl_(library()),
      streams_(streams),
      stream_(stream),
      rank_(place.rank),
      size_(place.size),
      patience_(place.patience) {
  open(place);
}

std::string Member::who() const { return fmt::format("rank {} of {}", rank_, size_); }

/// In a thread, since NCCL waits for the others without a limit. (Its communicators that do not block would make
/// every later call another one than a program's usual.)
void Member::open(const Place& place) {
  const auto opening = std::make_shared<Opening>();
  std::thread thread([opening, &nccl = nccl_, &streams = streams_, stream = stream_, place] {
    // NCCL takes the device that is current for the thread; any call of ours makes it this process's.
    static_cast<void>(streams.poll(stream));
    Communicator* comm = nullptr;
    const Outcome outcome = nccl.comm_init_rank(&comm, place.size, place.id, place.rank);
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
                fmt::format("NCCL {} ({}): ncclCommInitRank of {} did not end within {} ms: do the others run, and may "
                            "they reach each other (NCCL_SOCKET_IFNAME)?",
                            nccl_.version, nccl_.path, who(), patience_.count()));
  }
  lock.unlock();
  thread.join();
  if (opening->outcome != Outcome::success) {
    throw Error(Status::io_error,
                fmt::format("NCCL {} ({}): ncclCommInitRank of {} failed: {} (NCCL_DEBUG=WARN says more)",
                            nccl_.version, nccl_.path, who(), opening->text));
  }
  comm_ = opening->comm;
}

Member::~Member() {
  // To destroy is to wait for the others, of whom after a failure nobody promises to come.
  static_cast<void>(given_up_ || std::uncaught_exceptions() > 0 ? nccl_.comm_abort(comm_) : nccl_.comm_destroy(comm_));
}

void Member::check(Outcome outcome, const char* call, std::size_t bytes) {
  if (outcome == Outcome::success) return;
  given_up_ = true;
  fail(nccl_, outcome, fmt::format("{} of {} bytes on {}", call, bytes, who()));
}

void Member::send(const void* data, std::size_t bytes, int peer) {
  check(nccl_.send(data, std::max<std::size_t>(bytes, 1), DataType::bytes, peer, comm_, stream_), "ncclSend", bytes);
}

void Member::recv(void* data, std::size_t bytes, int peer) {
  check(nccl_.recv(data, std::max<std::size_t>(bytes, 1), DataType::bytes, peer, comm_, stream_), "ncclRecv", bytes);
}

void Member::together(const std::function<void()>& transfers) {
  check(nccl_.group_start(), "ncclGroupStart", 0);
  try {
    transfers();
  } catch (...) {
    static_cast<void>(nccl_.group_end());  // an open group would hold back the end of the member
    throw;
  }
  check(nccl_.group_end(), "ncclGroupEnd", 0);
}

void Member::allreduce(const float* in, float* out, std::size_t floats) {
  check(nccl_.all_reduce(in, out, floats, DataType::f32, ReduceOp::sum, comm_, stream_), "ncclAllReduce",
        floats * sizeof(float));
}

void Member::broadcast(float* data, std::size_t floats) {
  check(nccl_.broadcast(data, data, floats, DataType::f32, 0, comm_, stream_), "ncclBroadcast", floats * sizeof(float));
}

void Member::allgather(const float* in, float* out, std::size_t block) {
  check(nccl_.all_gather(in, out, block, DataType::f32, comm_, stream_), "ncclAllGather", block * sizeof(float));
}

void Member::reduce_scatter(const float* in, float* out, std::size_t block) {
  check(nccl_.reduce_scatter(in, out, block, DataType::f32, ReduceOp::sum, comm_, stream_), "ncclReduceScatter",
        block * sizeof(float));
}

void Member::alltoall(const float* in, float* out, std::size_t block) {
  const std::size_t bytes = block * sizeof(float);
  if (nccl_.all_to_all != nullptr)
    return check(nccl_.all_to_all(in, out, block, DataType::f32, comm_, stream_), "ncclAlltoAll", bytes);
  together([&] {
    for (int peer = 0; peer < size_; ++peer) {
      send(in + static_cast<std::size_t>(peer) * block, bytes, peer);
      recv(out + static_cast<std::size_t>(peer) * block, bytes, peer);
    }
  });
}

void Member::wait() {
  Clock::time_point give_up{};
  Status status = streams_.poll(stream_);
  for (unsigned polls = 0; status == Status::in_progress; ++polls, status = streams_.poll(stream_)) {
    if (polls % kPollsPerLook != kPollsPerLook - 1) continue;
    const Clock::time_point now = Clock::now();
    if (give_up == Clock::time_point{}) give_up = now + patience_;
    if (now < give_up) continue;
    given_up_ = true;
    throw Error(Status::timed_out,
                fmt::format("NCCL {} ({}): {} has waited {} ms for its transfers; are the other processes alive?",
                            nccl_.version, nccl_.path, who(), patience_.count()));
  }
  if (status == Status::ok) return;
  given_up_ = true;
  throw Error(status, fmt::format("NCCL {} ({}): the stream of {} failed: {}", nccl_.version, nccl_.path, who(),
                                  status_text(status)));
}

}  // namespace brant::bench::nccl
