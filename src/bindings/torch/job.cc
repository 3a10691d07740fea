#include "bindings/torch/job.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <set>

#include "bindings/torch/group.h"
#include "brant/core/start_via.h"

namespace brant::distributed {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr unsigned kLooks = 300;    // idle progress calls before a thread that moves the network lets others run
constexpr unsigned kYields = 20;    // and before it sleeps
constexpr unsigned kPatience = 16;  // progress calls between looks for others who want to post
constexpr auto kLongestSleep = std::chrono::milliseconds(100);
constexpr auto kStreamPause = std::chrono::microseconds(50);  // between looks at streams that calls wait for

std::mutex g_mutex;
std::set<Job*> g_jobs;  // those that have not ended

std::atomic<unsigned> g_forks = 0;  // between the first process that made a job and this one

unsigned count_forks() {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { ++g_forks; });
  static_cast<void>(registered);
  return g_forks;
}

std::unique_ptr<Runtime> start(Exchange& exchange, std::chrono::milliseconds timeout, int gpu) {
  RuntimeOptions options = RuntimeOptions::from_environment();
  const bool is_emulated = options.gpu == GpuChoice::emulated;  // for tests
  options.gpu = gpu < 0 ? GpuChoice::none : is_emulated ? GpuChoice::emulated : GpuChoice::cuda;
  options.gpu_ordinal = gpu;
  options.boot_timeout = timeout;
  return start_via(exchange, options);
}

/// The destructor of a runtime waits for nobody while an exception is under way.
void leave_without_waiting(std::unique_ptr<Runtime> runtime) {
  try {
    const std::unique_ptr<Runtime> goes = std::move(runtime);
    throw Error(Status::canceled, "the program has failed");
  } catch (const Error&) {
  }
}

}  // namespace

Job::Job(std::unique_ptr<Meeting> meeting, std::chrono::milliseconds timeout, int gpu)
    : forks_(count_forks()),
      gpu_(gpu),
      meeting_(std::move(meeting)),
      runtime_(start(*meeting_, timeout, gpu)),
      bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (bell_ < 0) throw Error(Status::limit_reached, "no descriptor is left for a process group: raise `ulimit -n`");
  thread_ = std::thread([this] { move(); });
  const std::scoped_lock lock(g_mutex);
  g_jobs.insert(this);
}

Job::~Job() {
  end(false);
  ::close(bell_);
}

bool Job::is_parents() const noexcept { return forks_ != g_forks; }

void Job::require_own() const {
  if (is_parents())
    throw Error(Status::shutting_down,
                "this process was forked, and has no part in the process group of its parent: start it anew "
                "(multiprocessing's spawn), or call the collectives there");
}

void Job::require_running() const {
  if (ended_) throw Error(Status::shutting_down, "this process group was destroyed: make another one");
}

void Job::end_all(bool failed) {
  std::vector<Job*> left;
  {
    const std::scoped_lock lock(g_mutex);
    left.assign(g_jobs.begin(), g_jobs.end());
  }
  for (Job* job : left) job->end(failed);
}

void Job::end(bool failed) {
  if (is_parents()) return;
  {
    const std::scoped_lock lock(g_mutex);
    if (g_jobs.erase(this) == 0) return;
  }
  {
    const Claim claim(*this);
    ended_ = true;
    for (const auto& group : groups_) group->close();
  }
  wake();
  turn_.notify_all();
  thread_.join();
  meeting_->part();
  {
    const Claim claim(*this);
    while (runtime_->worker().progress() != 0) {
    }
    if (failed) {
      leave_without_waiting(std::move(runtime_));
    } else {
      runtime_.reset();
    }
    for (const auto& group : groups_) group->abandon();
  }
  settle();
}

Group& Job::adopt(std::unique_ptr<Group> group) {
  groups_.push_back(std::move(group));
  return *groups_.back();
}

void Job::wake() noexcept {
  if (!asleep_.exchange(false)) return;
  const std::uint64_t one = 1;
  static_cast<void>(::write(bell_, &one, sizeof one));
}

void Job::sleep(std::chrono::nanoseconds longest) {
  asleep_.store(true);
  const std::chrono::nanoseconds armed = runtime_->worker().arm();
  longest = std::min({longest, armed, std::chrono::nanoseconds(kLongestSleep)});
  if (gates_ != 0) longest = std::min<std::chrono::nanoseconds>(longest, kStreamPause);
  if (longest <= std::chrono::nanoseconds(0) || ended_) {
    asleep_.store(false);
    return;
  }
  std::array<pollfd, 2> places{{{runtime_->worker().fd(), POLLIN, 0}, {bell_, POLLIN, 0}}};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
  const timespec limit{seconds.count(), (longest - seconds).count()};
  mutex_.unlock();
  const int ready = ::ppoll(places.data(), places.size(), &limit, nullptr);
  if (ready > 0 && places[1].revents != 0) {
    std::uint64_t rung = 0;
    static_cast<void>(::read(bell_, &rung, sizeof rung));
  }
  asleep_.store(false);
  mutex_.lock();
}

void Job::settle() {
  std::vector<std::unique_ptr<Call>> finished;
  {
    const Claim claim(*this);
    finished.swap(finished_);
  }
  for (const auto& call : finished) {
    call->done({call->result.status, std::move(call->text), call->result.bytes, call->source});
    call->done = nullptr;  // what it kept goes before anybody hears more
  }
  if (!finished.empty()) wake();  // who sleeps may have waited for it
}

unsigned Job::progress() {
  unsigned events = runtime_->worker().progress();
  if (gates_ != 0) {
    for (const auto& group : groups_) events += group->pass_gates();
  }
  if (!late_.empty()) {
    for (Group* group : std::exchange(late_, {})) group->end_late();
  }
  return events;
}

/// The thread of the job.
void Job::move() {
  std::unique_lock lock(mutex_);
  unsigned idle = 0;
  for (unsigned looks = 1; !ended_; ++looks) {
    if (waiters_ != 0) {
      turn_.wait(lock, [this] { return waiters_ == 0 || ended_; });
      idle = 0;
      continue;
    }
    idle = progress() != 0 ? 0 : idle + 1;
    const bool wanted = looks % kPatience == 0 && claims_.load(std::memory_order_relaxed) != 0;
    if (finished_.empty() && idle < kLooks && !wanted) continue;
    if (finished_.empty() && idle >= kLooks + kYields) {
      sleep(kLongestSleep);
      continue;
    }
    lock.unlock();
    settle();
    if (wanted || idle != 0) std::this_thread::yield();
    lock.lock();
  }
}

bool Job::wait(const std::function<bool()>& done, SteadyClock::time_point deadline) {
  if (done()) return true;
  require_own();
  std::unique_lock lock(mutex_);
  ++waiters_;
  unsigned idle = 0;
  bool in_time = true;
  for (unsigned looks = 1; !done(); ++looks) {
    if (ended_) {  // who ends it tells of all calls
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
      if (in_time = SteadyClock::now() < deadline; !in_time) break;
      continue;
    }
    idle = progress() != 0 ? 0 : idle + 1;
    const bool wanted = looks % kPatience == 0 && claims_.load(std::memory_order_relaxed) != 0;
    if (finished_.empty() && idle < kLooks && !wanted) continue;
    if (finished_.empty() && idle >= kLooks) {
      const auto now = SteadyClock::now();
      if (in_time = now < deadline; !in_time) break;
      if (idle >= kLooks + kYields) {
        sleep(std::min<std::chrono::nanoseconds>(deadline - now, kLongestSleep));
        continue;
      }
    }
    lock.unlock();
    settle();
    if (wanted || idle >= kLooks) std::this_thread::yield();
    lock.lock();
  }
  if (--waiters_ == 0) turn_.notify_one();
  return in_time;
}

}  // namespace brant::distributed
