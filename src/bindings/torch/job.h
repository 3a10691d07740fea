#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "brant/base/exchange.h"
#include "brant/brant.h"
#include "brant/core/timer.h"

namespace brant::distributed {

class Group;

/// What became of a call: with a text for people where it failed.
struct Outcome {
  Status status = Status::ok;
  std::string text;
  std::uint64_t bytes = 0;
  int source = -1;  ///< Of a receive from anybody: which member it came from.
};
/// Told once, outside of all locks, on whichever thread moved the network.
using Done = std::function<void(const Outcome&)>;

/// Some operations of a group that end together.
struct Call {
  Call(Group& of, Done told) : group(of), done(std::move(told)) {}

  Group& group;
  Done done;
  std::deque<Op> ops;
  struct Limit : Timer {
    Call* call = nullptr;
  };
  Limit limit;  ///< Of messages: when the other member is late.
  bool late = false;
  std::size_t pending = 1;  ///< The one who posts counts as one.
  OpResult result;
  int peer = -1;  ///< Of the group, for reports; -1: all.
  int source = -1;
  std::string text;
  std::shared_ptr<void> keeps;  ///< What its operations use.
};

/// Meets the other processes: as Exchange, and told when this process only parts from them any more, so that a store
/// that has gone is no fault.
class Meeting : public Exchange {
 public:
  void part() noexcept { parting_ = true; }

 protected:
  [[nodiscard]] bool is_parting() const noexcept { return parting_; }

 private:
  bool parting_ = false;
};

/// This process's part in what one `init_process_group` began: the runtime, whose calls belong to one thread at a time,
/// and who moves it. A thread that waits for a call moves it itself, which costs no switch of threads; as long as none
/// waits, a thread of the job does, so that gradients travel while others are still computed.
class Job {
 public:
  /// Collective over those of `meeting`; works with this GPU, or -1: with none. Throws what `start_via` throws.
  Job(std::unique_ptr<Meeting> meeting, std::chrono::milliseconds timeout, int gpu);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();

  /// Ends this process's part; calls under way end as canceled. After a failure the other processes are not waited for.
  /// May be repeated.
  void end(bool failed);
  /// All that live: at the end of the interpreter.
  static void end_all(bool failed);

  [[nodiscard]] Runtime& runtime() noexcept { return *runtime_; }
  [[nodiscard]] int gpu() const noexcept { return gpu_; }

  /// This process is a child that was forked: it has neither the thread nor a part in the job, and its locks may be
  /// held by threads that it has not. The job must not be destroyed here.
  [[nodiscard]] bool is_parents() const noexcept;
  /// Throws shutting_down in such a child.
  void require_own() const;

  /// Runs `body`, which may post, while nobody else moves the runtime. Throws shutting_down after the end. Then the
  /// thread of the job goes on with what was posted, unless the caller `waits` for it himself.
  template <typename Body>
  void with(bool waits, Body&& body) {
    require_own();
    {
      const Claim claim(*this);
      require_running();
      body();
    }
    settle();
    if (!waits) wake();
  }

  /// Moves the network until `done()`, which is looked at without a lock, or the time is over: false.
  bool wait(const std::function<bool()>& done, std::chrono::steady_clock::time_point deadline);

  /// With the job claimed: nothing of it is pending any more. It is told later, by `settle`.
  void finish(std::unique_ptr<Call> call) { finished_.push_back(std::move(call)); }
  /// From a timer: a call of this group was not done in time, and the group ends.
  void note_late(Group& group) { late_.push_back(&group); }
  /// So many more calls wait for streams, which are looked at until none does.
  void note_gates(int more) noexcept { gates_ += more; }
  /// Kept until the end, since calls may refer to it.
  Group& adopt(std::unique_ptr<Group> group);

 private:
  /// The mutex, for whose sake a thread that moves the network for long lets go of it.
  class Claim {
   public:
    explicit Claim(Job& job) : job_(job) {
      job_.claims_.fetch_add(1, std::memory_order_relaxed);
      job_.mutex_.lock();
      job_.claims_.fetch_sub(1, std::memory_order_relaxed);
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() { job_.mutex_.unlock(); }

   private:
    Job& job_;
  };

  void require_running() const;
  [[nodiscard]] unsigned progress();
  void move();
  /// Until something happened or was called for; with the mutex, which it lets go of while it sleeps.
  void sleep(std::chrono::nanoseconds longest);
  /// Tells of what has finished.
  void settle();
  void wake() noexcept;

  const unsigned forks_;  ///< Before it was made.
  const int gpu_;
  std::unique_ptr<Meeting> meeting_;
  std::unique_ptr<Runtime> runtime_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::mutex mutex_;  ///< Of the runtime, and what follows.
  std::condition_variable turn_;
  std::vector<std::unique_ptr<Call>> finished_;
  std::vector<Group*> late_;
  int gates_ = 0;
  unsigned waiters_ = 0;
  bool ended_ = false;
  std::atomic<unsigned> claims_ = 0;
  std::atomic<bool> asleep_ = false;
  int bell_;  ///< Wakes who sleeps.
  std::thread thread_;
};

}  // namespace brant::distributed
