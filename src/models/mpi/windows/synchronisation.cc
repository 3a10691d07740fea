#include "models/mpi/windows/synchronisation.h"

#include <algorithm>
#include <list>
#include <numeric>
#include <optional>
#include <utility>

#include "base/memory_fence.h"
#include "models/mpi/process.h"
#include "models/mpi/windows/window_messenger.h"

namespace brant::mpi {

namespace {

WindowMessenger& messenger_of(const Window& window) { return window.rank.process.windows(); }

bool is_lost(const Window& window, int member) { return messenger_of(window).is_lost(window.process_of(member)); }

/// The answer of a member to one word.
class Answer final : public Awaited {
 public:
  Answer(Window& window, int member, WindowWord word, int value) : messenger_(messenger_of(window)) {
    ticket_ = messenger_.await(window.process_of(member), *this);
    if (ticket_ == 0) return;
    WindowHeader header = WindowMessenger::header_to(window, member, word);
    header.value = value;
    header.ticket = ticket_;
    messenger_.say(window.process_of(member), header);
  }
  ~Answer() override {
    if (!done_) messenger_.forget(ticket_);
  }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  void answered(int error, std::span<const std::byte>) noexcept override {
    done_ = true;
    error_ = error;
  }
  [[nodiscard]] bool done() const noexcept { return done_; }
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  WindowMessenger& messenger_;
  std::uint64_t ticket_ = 0;
  bool done_ = false;
  int error_ = MPI_SUCCESS;
};

/// A first error and the member it came from.
struct FirstError {
  int error = MPI_SUCCESS;
  int member = -1;

  void note(int next, int of) noexcept {
    if (error != MPI_SUCCESS || next == MPI_SUCCESS) return;
    error = next;
    member = of;
  }
  void or_throw() const {
    if (error == MPI_SUCCESS) return;
    if (error == MPI_ERR_PROC_ABORTED) fail(error, "rank {} of the window has died", member);
    if (error == MPI_ERR_RMA_RANGE)
      fail(error, "an access to rank {} was outside the memory that is attached there", member);
    fail(error, "an access to rank {} ended with an error", member);
  }
};

void require_assertion(int assertion, int known) {
  require((assertion & ~known) == 0, MPI_ERR_ASSERT, "the assertion {} is none of this call's", assertion);
}

/// What MPI_Win_fence has opened ends with the next call that opens an epoch of another sort.
void leave_fence(Window& window) {
  require(!window.fence_used, MPI_ERR_RMA_SYNC,
          "there were accesses since MPI_Win_fence: they are to be ended by another MPI_Win_fence first");
  window.fenced = false;
}

void require_no_access_epoch(const Window& window) {
  require(!window.locked_all && window.locks_held == 0, MPI_ERR_RMA_SYNC,
          "this rank holds a lock of the window: it is to be unlocked first");
  require(!window.started, MPI_ERR_RMA_SYNC, "MPI_Win_start was called: MPI_Win_complete is to be called first");
}

/// All members take part, also if this one has an error to tell of.
void meet(Window& window, FirstError known) {
  RankTeam& team = window.communicator.team();
  const Status status = team.run(barrier()).status;
  known.or_throw();
  if (status == Status::ok) return;
  const std::string fault = team.fault();
  fail(error_class_of(status), "{}", fault.empty() ? std::string(status_text(status)) : fault);
}

// Flushing
// -------------------------------------------------------------------------------------------------------------------

/// What ends the accesses to one member.
struct MemberFlush {
  explicit MemberFlush(int member_in) noexcept : member(member_in) {}

  const int member;
  std::optional<Operation> fence;  ///< What has gone by the network is visible.
  std::optional<Answer> answer;    ///< What the member carries out is done.

  void begin(Window& window) {
    WindowPeer& peer = window.peer(member);
    if (std::exchange(peer.has_messages, false)) answer.emplace(window, member, WindowWord::flush, 0);
    if (!std::exchange(peer.has_puts, false)) return;
    Runtime& runtime = window.rank.process.runtime();
    const auto post_one = [&](brant::Op& op) noexcept { return post_fence(runtime, window.process_of(member), op); };
    fence.emplace(Moment::delivered, post_one);
    while (fence->done() && fence->result().status == Status::limit_reached) {
      window.rank.progress();
      fence.emplace(Moment::delivered, post_one);
    }
  }
  [[nodiscard]] bool done(Window& window) const noexcept {
    return window.peer(member).under_way == 0 && (!fence || fence->done()) && (!answer || answer->done());
  }
  void tell(FirstError& first) const noexcept {
    if (answer) first.note(answer->error(), member);
    if (fence) first.note(error_class_of(fence->result().status), member);
  }
};

FirstError try_flush(Window& window, std::span<const int> members, FlushTo to = FlushTo::target) {
  std::list<MemberFlush> flushes;
  for (const int member : members) {
    MemberFlush& each = flushes.emplace_back(member);
    if (to == FlushTo::target) each.begin(window);
  }
  window.rank.progress();
  window.rank.wait(
      [&] { return std::ranges::all_of(flushes, [&](const MemberFlush& each) { return each.done(window); }); });
  FirstError first;
  Transfer* following = nullptr;
  for (Transfer* landed = window.landed.front(); landed != nullptr; landed = following) {
    following = IntrusiveList<Transfer, &Transfer::hook>::next(*landed);
    const int member = landed->target;
    if (std::ranges::find(members, member) != members.end()) first.note(landed->settle(), member);
  }
  for (const MemberFlush& each : flushes) {
    each.tell(first);
    first.note(std::exchange(window.peer(each.member).error, MPI_SUCCESS), each.member);
  }
  return first;
}

std::vector<int> all_members(const Window& window) {
  std::vector<int> all(static_cast<std::size_t>(window.size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

/// A word that comes after its window has gone would find nobody, or a process that has ended MPI.
void flush_words(Window& window) {
  for (WindowPeer& peer : window.peers) peer.has_messages = peer.has_messages || peer.has_words;
  try_flush(window, all_members(window)).or_throw();
}

void require_access(Window& window, int member, bool passive) {
  const WindowPeer& peer = window.peer(member);
  if (peer.hold != WindowPeer::Hold::none) return;
  require(!passive, MPI_ERR_RMA_SYNC, "accesses with a request need MPI_Win_lock of rank {}, or MPI_Win_lock_all",
          member);
  if (peer.started) return;
  require(window.fenced && !window.started && window.locks_held == 0, MPI_ERR_RMA_SYNC,
          "rank {} may not be accessed now: call MPI_Win_fence, MPI_Win_start or MPI_Win_lock first", member);
  window.fence_used = true;
}

// Fences
// -------------------------------------------------------------------------------------------------------------------

void fence(Window& window, int assertion) {
  require_assertion(assertion, MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED);
  require_no_access_epoch(window);
  require(!window.exposed, MPI_ERR_RMA_SYNC, "MPI_Win_post was called: MPI_Win_wait is to be called first");
  const FirstError first = try_flush(window, all_members(window));
  window.fence_used = false;
  window.fenced = (assertion & MPI_MODE_NOSUCCEED) == 0;
  meet(window, first);
}

// Post, start, complete, wait
// -------------------------------------------------------------------------------------------------------------------

namespace {

std::vector<int> members_in(const Window& window, const Members& group) {
  std::vector<int> found;
  for (const RankId id : group.ids()) {
    found.push_back(window.communicator.members->find(id));
    require(found.back() != MPI_UNDEFINED, MPI_ERR_GROUP,
            "rank {} of MPI_COMM_WORLD is in the group, and not in the window", id.value);
  }
  return found;
}

void say(Window& window, int member, WindowWord word) {
  window.peer(member).has_words = true;
  messenger_of(window).say(window.process_of(member), WindowMessenger::header_to(window, member, word));
}

bool has_completed(Window& window, int member) {
  return window.peer(member).completions >= window.peer(member).exposures;
}

bool have_completed(Window& window) {
  return std::ranges::all_of(*window.exposed,
                             [&](int member) { return has_completed(window, member) || is_lost(window, member); });
}

void end_exposure(Window& window) {
  FirstError first;
  for (const int member : *window.exposed) {
    if (!has_completed(window, member)) first.note(MPI_ERR_PROC_ABORTED, member);
  }
  window.exposed.reset();
  first.or_throw();
}

}  // namespace

void post(Window& window, const Members& origins, int assertion) {
  require_assertion(assertion, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT);
  require(!window.exposed, MPI_ERR_RMA_SYNC, "MPI_Win_post was called already: MPI_Win_wait is to be called first");
  std::vector<int> members = members_in(window, origins);
  leave_fence(window);
  for (const int member : members) {
    ++window.peer(member).exposures;
    say(window, member, WindowWord::posted);
  }
  window.exposed = std::move(members);
}

void start(Window& window, const Members& targets, int assertion) {
  require_assertion(assertion, MPI_MODE_NOCHECK);
  require_no_access_epoch(window);
  std::vector<int> members = members_in(window, targets);
  leave_fence(window);
  const auto is_ready = [&](int member) {
    const WindowPeer& peer = window.peer(member);
    return peer.posts >= peer.starts || is_lost(window, member);
  };
  for (const int member : members) {
    ++window.peer(member).starts;
    if ((assertion & MPI_MODE_NOCHECK) == 0 && !is_ready(member)) say(window, member, WindowWord::greeting);
  }
  if ((assertion & MPI_MODE_NOCHECK) == 0) window.rank.wait([&] { return std::ranges::all_of(members, is_ready); });
  for (const int member : members) {
    require(!is_lost(window, member), MPI_ERR_PROC_ABORTED, "rank {} of the window has died", member);
  }
  for (const int member : members) window.peer(member).started = true;
  window.started = std::move(members);
}

void complete(Window& window) {
  require(window.started.has_value(), MPI_ERR_RMA_SYNC, "MPI_Win_start was not called");
  const std::vector<int> members = std::move(*window.started);
  window.started.reset();
  const FirstError first = try_flush(window, members);
  for (const int member : members) {
    window.peer(member).started = false;
    say(window, member, WindowWord::completed);
  }
  first.or_throw();
}

void wait_for_completions(Window& window) {
  require(window.exposed.has_value(), MPI_ERR_RMA_SYNC, "MPI_Win_post was not called");
  window.rank.wait([&] { return have_completed(window); });
  end_exposure(window);
}

bool test_completions(Window& window) {
  require(window.exposed.has_value(), MPI_ERR_RMA_SYNC, "MPI_Win_post was not called");
  if (!have_completed(window)) window.rank.progress();
  if (!have_completed(window)) return false;
  end_exposure(window);
  return true;
}

// Locks
// -------------------------------------------------------------------------------------------------------------------

namespace {

/// Asks all of them at once.
FirstError try_lock(Window& window, std::span<const int> members, bool exclusive, int assertion) {
  using Hold = WindowPeer::Hold;
  FirstError first;
  std::list<std::pair<int, Answer>> answers;
  for (const int member : members) {
    if ((assertion & MPI_MODE_NOCHECK) != 0) {
      window.peer(member).hold = Hold::unchecked;
    } else {
      const int type = exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
      answers.emplace_back(std::piecewise_construct, std::forward_as_tuple(member),
                           std::forward_as_tuple(window, member, WindowWord::lock, type));
    }
  }
  window.rank.wait([&] { return std::ranges::all_of(answers, [](const auto& each) { return each.second.done(); }); });
  for (const auto& [member, answer] : answers) {
    first.note(answer.error(), member);
    if (answer.error() == MPI_SUCCESS) window.peer(member).hold = exclusive ? Hold::exclusive : Hold::shared;
  }
  return first;
}

void release(Window& window, std::span<const int> members) {
  using Hold = WindowPeer::Hold;
  for (const int member : members) {
    const Hold held = std::exchange(window.peer(member).hold, Hold::none);
    if (held == Hold::shared || held == Hold::exclusive) say(window, member, WindowWord::unlock);
  }
}

void require_lock(Window& window, int member) {
  require(window.peer(member).hold != WindowPeer::Hold::none, MPI_ERR_RMA_SYNC,
          "this rank holds no lock of rank {}: call MPI_Win_lock first", member);
}

void require_any_lock(const Window& window) {
  require(window.locked_all || window.locks_held != 0, MPI_ERR_RMA_SYNC,
          "this rank holds no lock of the window: call MPI_Win_lock or MPI_Win_lock_all first");
}

std::vector<int> locked_members(const Window& window) {
  std::vector<int> members = all_members(window);
  std::erase_if(members, [&](int member) {
    return window.peers[static_cast<std::size_t>(member)].hold == WindowPeer::Hold::none;
  });
  return members;
}

}  // namespace

void lock(Window& window, int member, bool exclusive, int assertion) {
  require_assertion(assertion, MPI_MODE_NOCHECK);
  require(!window.locked_all && window.peer(member).hold == WindowPeer::Hold::none, MPI_ERR_RMA_SYNC,
          "this rank holds the lock of rank {} already", member);
  require(!window.started, MPI_ERR_RMA_SYNC, "MPI_Win_start was called: MPI_Win_complete is to be called first");
  leave_fence(window);
  const int members[] = {member};
  try_lock(window, members, exclusive, assertion).or_throw();
  ++window.locks_held;
}

void unlock(Window& window, int member) {
  require_lock(window, member);
  require(!window.locked_all, MPI_ERR_RMA_SYNC, "MPI_Win_lock_all was called: MPI_Win_unlock_all ends it");
  const int members[] = {member};
  const FirstError first = try_flush(window, members);
  release(window, members);
  --window.locks_held;
  first.or_throw();
}

void lock_all(Window& window, int assertion) {
  require_assertion(assertion, MPI_MODE_NOCHECK);
  require_no_access_epoch(window);
  leave_fence(window);
  const std::vector<int> members = all_members(window);
  const FirstError first = try_lock(window, members, false, assertion);
  if (first.error != MPI_SUCCESS) release(window, members);
  first.or_throw();
  window.locked_all = true;
}

void unlock_all(Window& window) {
  require(window.locked_all, MPI_ERR_RMA_SYNC, "MPI_Win_lock_all was not called");
  const std::vector<int> members = all_members(window);
  const FirstError first = try_flush(window, members);
  release(window, members);
  window.locked_all = false;
  first.or_throw();
}

void flush(Window& window, int member, FlushTo to) {
  require_lock(window, member);
  const int members[] = {member};
  try_flush(window, members, to).or_throw();
}

void flush_all(Window& window, FlushTo to) {
  require_any_lock(window);
  try_flush(window, locked_members(window), to).or_throw();
}

void sync(Window& window) {
  memory_fence(std::memory_order_seq_cst);
  window.rank.progress();
  memory_fence(std::memory_order_seq_cst);
}

}  // namespace brant::mpi
