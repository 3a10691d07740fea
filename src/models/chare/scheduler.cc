#include "models/chare/scheduler.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/batch_time.h"
#include "models/chare/gatherings.h"

namespace brant::detail {
namespace {

constexpr unsigned kBatch = 64;         // messages between looks at the network, at most
constexpr unsigned kHoldDepthMax = 32;  // calls held back inside calls held back: each costs stack

}  // namespace

Scheduler::Scheduler(const ProgramContext& context, Activity& activity, Collections& collections,
                     const Messages& messages, Sending& sending, ReadyQueue& queue, Ending& ending, Answers& answers,
                     WaitReport& report, Quiet& quiet, Running& running) noexcept
    : context_(context),
      activity_(activity),
      collections_(collections),
      messages_(messages),
      sending_(sending),
      queue_(queue),
      ending_(ending),
      answers_(answers),
      report_(report),
      quiet_(quiet),
      running_(running) {}

unsigned Scheduler::step() {
  activity_.in_progress = true;
  unsigned events = context_.engine.progress().step();
  activity_.in_progress = false;
  if (sending_.in_trouble()) [[unlikely]]
    look_at_troubles();
  if (context_.lanes.broken().status != Status::ok && !ending_.ended()) [[unlikely]]
    look_at_lanes();
  if (sending_.holds() && sending_.flush()) ++events;
  if (!ending_.leaving() && !queue_.empty()) {
    events += running_.run_ready(kBatch);
    context_.engine.progress().note_user_code();
    context_.engine.silence().end();
  }
  if (ending_.has_main()) ending_.look_at_main();
  if (events == 0 && context_.rank == 0 && !ending_.leaving()) quiet_.look();
  return events;
}

void Scheduler::run_until_ended() {
  while (!ending_.ended()) {
    if (step() == 0 && !ending_.ended()) wait({}, Worker::kForever);
  }
  sending_.drain_urgent();
}

bool Scheduler::has_work() const noexcept {
  return ending_.ended() || sending_.in_trouble() || context_.lanes.broken().status != Status::ok ||
         (!queue_.empty() && !ending_.leaving()) || ending_.main_finished();
}

std::chrono::nanoseconds Scheduler::patience() const noexcept {
  // With messages held back for want of credit, the network alone cannot say when to go on.
  const auto patience = sending_.holds() ? std::chrono::nanoseconds(std::chrono::microseconds(50)) : Worker::kForever;
  return context_.rank == 0 ? std::min(patience, quiet_.patience()) : patience;
}

std::chrono::nanoseconds Scheduler::longest_sleep() const noexcept {
  return has_work() ? std::chrono::nanoseconds(0) : patience();
}

void Scheduler::wait(const std::function<bool()>& until, std::chrono::nanoseconds longest) {
  auto something = [this, &until, held = sending_.holds()] {
    if (!held && sending_.holds()) return true;  // a task that was resumed in the wait has sent too much at once
    return has_work() || (until && until());
  };
  activity_.in_progress = true;
  static_cast<void>(context_.chares.runtime().worker().wait_until(something, std::min(longest, patience())));
  activity_.in_progress = false;
}

/// Too much is undelivered: lets others run until there is room. Runs no chare whose method is on the stack.
void Scheduler::hold_back() {
  // Nine tenths; of small bounds at least 1, since with nothing left undelivered there is always room.
  const auto most_of = [](std::size_t bound) { return std::max<std::size_t>(bound - bound / 10, 1); };
  const auto too_much = [this, most_of] {
    return messages_.undelivered() >= most_of(context_.options.undelivered_max) ||
           messages_.undelivered_bytes() >= most_of(context_.options.undelivered_bytes_max);
  };
  const auto refuse = [this](const char* why) {
    throw Error(Status::limit_reached,
                fmt::format("rank {}: {} messages ({} bytes) that were sent here are undelivered (first: {}), and {}. "
                            "Send less at once, await replies in between, or raise ChareOptions::undelivered_max",
                            context_.rank, messages_.undelivered(), messages_.undelivered_bytes(),
                            report_.first_undelivered(), why));
  };
  ++activity_.held_back;
  if (activity_.in_progress || activity_.hold_depth >= kHoldDepthMax || collections_.gatherings().at_work()) {
    // Here nothing can be run: some more is let through, not without end.
    if (messages_.undelivered() < 2 * context_.options.undelivered_max &&
        messages_.undelivered_bytes() < 2 * context_.options.undelivered_bytes_max)
      return;
    refuse(activity_.in_progress || activity_.hold_depth < kHoldDepthMax
               ? "the caller is a coroutine that a network completion or a reduction resumed"
               : "calls are held back inside calls too deeply");
  }
  ++activity_.hold_depth;
  am::MessageList set_aside;
  const TimePoint deadline = deadline_after(context_.options.held_back_max);
  const char* why = nullptr;
  while (too_much() && !ending_.leaving()) {
    const unsigned events = std::exchange(activity_.in_progress, true) ? 0 : context_.engine.progress().step();
    activity_.in_progress = false;
    const bool sent = sending_.holds() && sending_.flush();
    if (run_others(set_aside) || sent) continue;
    const bool all_here = !sending_.holds();
    if ((all_here && events == 0) || Clock::now() > deadline) {
      why = all_here ? "all of them are for chares whose methods have not returned"
                     : "their receivers took none for too long (a cycle of methods that wait for one another?)";
      break;
    }
    if (events == 0) std::this_thread::yield();
  }
  // What was skipped goes back to the front, in its order.
  queue_.push_front(set_aside);
  --activity_.hold_depth;
  if (why != nullptr) refuse(why);
}

bool Scheduler::may_run_nested(const am::Message& message) {
  const auto envelope = message.header<Envelope>();
  if (envelope.kind == MessageKind::broadcast || envelope.kind == MessageKind::destroy ||
      envelope.kind == MessageKind::destroy_all || envelope.kind == MessageKind::depart ||
      envelope.kind == MessageKind::moved) {
    return false;
  }
  if (envelope.kind != MessageKind::call) return true;
  const Collection* collection = collections_.ready(envelope.collection);
  if (collection == nullptr) return true;
  const ChareBase* chare = collection->find(key_of(message, envelope));
  return chare == nullptr || !Collection::busy(*chare);
}

bool Scheduler::run_others(am::MessageList& set_aside) {
  unsigned done = 0;
  BatchTime time;
  while (done < kBatch && !ending_.leaving() && !time.over(done)) {
    am::Message* message = queue_.pop();
    if (message == nullptr) break;
    if (!may_run_nested(*message)) {
      set_aside.push_back(*message);
      continue;
    }
    running_.run(*message);
    ++done;
  }
  return done != 0;
}

void Scheduler::look_at_troubles() {
  while (const std::optional<Sending::Trouble> trouble = sending_.take_trouble()) {
    const auto [peer, status] = *trouble;
    const auto say = [&, rank = peer.value, why = status] {
      return fmt::format("rank {} lost rank {} and its chares: {} ({})", context_.rank, rank, status_text(why),
                         status_name(why));
    };
    try {
      answers_.fail_waiting_for(peer.value, std::make_exception_ptr(Error(status, say())));
    } catch (const std::bad_alloc&) {  // they end with the job
    }
    ending_.fail_job(say, "a rank was lost, and its chares; memory is exhausted");
  }
}

void Scheduler::look_at_lanes() {
  const lane::DataLanes::Break& broken = context_.lanes.broken();
  ending_.fail_job(fmt::format(
      "rank {} could not {} rank {}: {} ({})", context_.rank,
      broken.receiving ? "receive a data argument that nobody wants any more from" : "send a data argument to",
      broken.rank, status_text(broken.status), status_name(broken.status)));
}

}  // namespace brant::detail
