#include "support/model/scheduler.h"

#include <algorithm>
#include <cstdlib>

namespace brant::test::model {
namespace {

constexpr std::size_t kStepsMax = 20'000;
constexpr std::size_t kStackBytes = 256 * 1024;

}  // namespace

void Scheduler::explore(const std::function<std::vector<std::function<void()>>()>& make,
                        const std::function<void()>& check, std::size_t schedules_max) {
  path_.clear();
  schedules_ = 0;
  complete_ = false;
  fault_.clear();
  do {
    run_one(make());
    ++schedules_;
    if (fault_.empty()) check();
    if (!fault_.empty()) return;
    if (schedules_ == schedules_max) return;
  } while (next_schedule());
  complete_ = true;
}

void Scheduler::sample(const std::function<std::vector<std::function<void()>>()>& make,
                       const std::function<void()>& check, std::size_t schedules, unsigned one_in, std::uint64_t seed) {
  schedules_ = 0;
  fault_.clear();
  one_in_ = one_in;
  chance_.seed(seed);
  for (; schedules_ < schedules && fault_.empty(); ++schedules_) {
    run_one(make());
    if (fault_.empty()) check();
  }
  one_in_ = 0;
}

bool Scheduler::next_schedule() {
  while (!path_.empty()) {
    Choice& last = path_.back();
    if (last.taken + 1 < last.count) {
      ++last.taken;
      return true;
    }
    path_.pop_back();
  }
  return false;
}

unsigned Scheduler::choose(unsigned count) {
  if (count < 2) return 0;
  if (one_in_ != 0) return chance_() % one_in_ == 0 ? static_cast<unsigned>(chance_() % count) : 0;
  if (depth_ < path_.size()) {
    const unsigned taken = path_[depth_++].taken;
    if (taken != 0) ++deviations_;
    return taken;
  }
  // Past the bound only the first is tried, and no choice is written down.
  path_.push_back({0, deviations_ < deviations_max_ ? count : 1});
  ++depth_;
  return 0;
}

void Scheduler::enter(unsigned high, unsigned low) {
  reinterpret_cast<Scheduler*>(std::uint64_t{high} << 32 | low)->run_body();
}

void Scheduler::run_body() {
  Thread& self = *threads_[running_];
  self.body();
  self.ended = true;
  while (!self.buffer.empty()) let_out(self, 0);  // what a thread stored becomes visible in the end
  setcontext(&home_);
}

/// Gives the turn to a thread that can use it; back here when one has ended.
void Scheduler::run_one(std::vector<std::function<void()>> bodies) {
  depth_ = 0;
  deviations_ = 0;
  steps_ = 0;
  changes_ = 0;
  abandoned_ = false;
  threads_.clear();
  crossings_.clear();
  crossings_made_ = 0;
  while (stacks_.size() < bodies.size()) stacks_.push_back(std::make_unique<std::byte[]>(kStackBytes));
  const auto self = reinterpret_cast<std::uint64_t>(this);
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    threads_.push_back(std::make_unique<Thread>());
    Thread& thread = *threads_[i];
    thread.body = std::move(bodies[i]);
    getcontext(&thread.place);
    thread.place.uc_stack.ss_sp = stacks_[i].get();
    thread.place.uc_stack.ss_size = kStackBytes;
    thread.place.uc_link = nullptr;
    makecontext(&thread.place, reinterpret_cast<void (*)()>(&Scheduler::enter), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
  }
  while (!abandoned_) {
    const auto next =
        std::find_if(threads_.begin(), threads_.end(), [&](const auto& thread) { return can_run(*thread); });
    if (next != threads_.end()) {
      running_ = static_cast<unsigned>(next - threads_.begin());
      swapcontext(&home_, &(*next)->place);
      continue;
    }
    if (std::all_of(threads_.begin(), threads_.end(), [](const auto& thread) { return thread->ended; })) return;
    if (unstick()) continue;
    if (fault_.empty()) fault_ = "all threads wait for each other";
    abandoned_ = true;
  }
}

bool Scheduler::can_run(const Thread& thread) const {
  return !thread.ended && (!thread.waiting || thread.seen != changes_);
}

void Scheduler::let_out(Thread& thread, std::size_t index) {
  const auto [to, value] = thread.buffer[index];
  thread.buffer.erase(thread.buffer.begin() + static_cast<long>(index));
  set_word(thread, to, value);
}

void Scheduler::set_word(const Thread& by, std::uint64_t* to, std::uint64_t value) {
  const auto place =
      std::find_if(threads_.begin(), threads_.end(), [&](const auto& each) { return each.get() == &by; });
  if (far(static_cast<unsigned>(place - threads_.begin()))) {
    std::erase_if(crossings_, [&](const Crossing& each) { return each.word == to; });
  } else if (far_threads != 0) {
    crossings_.push_back({to, *to, crossings_made_++, by.fenced});
  }
  *to = value;
  ++changes_;
}

void Scheduler::cross(std::size_t index) {
  crossings_.erase(crossings_.begin() + static_cast<long>(index));
  ++changes_;
}

/// Of one word the older store crosses first, and before what was fenced all that its thread could see then. The oldest
/// of all always can.
bool Scheduler::can_cross(std::size_t index) const {
  const Crossing& wanted = crossings_[index];
  return std::none_of(crossings_.begin(), crossings_.begin() + static_cast<long>(index),
                      [&](const Crossing& older) { return older.word == wanted.word || older.number < wanted.fenced; });
}

bool Scheduler::unstick() {
  for (const auto& thread : threads_) {
    if (thread->buffer.empty()) continue;
    let_out(*thread, 0);
    return true;
  }
  for (std::size_t k = crossings_.size(); k > 0; --k) {  // the newest that can: the least friendly of the orders
    if (!can_cross(k - 1)) continue;
    cross(k - 1);
    return true;
  }
  if (!on_stuck || !on_stuck()) return false;
  ++changes_;
  return true;
}

void Scheduler::hand_over(unsigned to) {
  if (to == running_) return;
  Thread& self = *threads_[running_];
  running_ = to;
  swapcontext(&self.place, &threads_[to]->place);
}

/// Before each access: who goes on, and does a store of anybody become visible first? The first answer is: the same
/// thread, and no.
void Scheduler::step() {
  if (++steps_ > kStepsMax) fail("a schedule without end");
  while (true) {
    std::vector<std::pair<unsigned, long>> options{{running_, -1}};
    for (unsigned i = 0; i < threads_.size(); ++i) {
      if (i != running_ && can_run(*threads_[i])) options.emplace_back(i, -1);
    }
    for (unsigned i = 0; i < threads_.size(); ++i) {
      const auto& buffer = threads_[i]->buffer;
      for (std::size_t k = 0; k < buffer.size(); ++k) {
        // Of one word the older store comes out first.
        const auto same = [&](const auto& entry) { return entry.first == buffer[k].first; };
        if (std::none_of(buffer.begin(), buffer.begin() + static_cast<long>(k), same)) {
          options.emplace_back(i, static_cast<long>(k));
        }
      }
    }
    const auto bus = static_cast<unsigned>(threads_.size());
    for (std::size_t k = 0; k < crossings_.size(); ++k) {
      if (can_cross(k)) options.emplace_back(bus, static_cast<long>(k));
    }
    const auto [thread, index] = options[choose(static_cast<unsigned>(options.size()))];
    if (index < 0) return hand_over(thread);
    thread == bus ? cross(static_cast<std::size_t>(index))
                  : let_out(*threads_[thread], static_cast<std::size_t>(index));
  }
}

void Scheduler::store(std::uint64_t* to, std::uint64_t value) {
  step();
  threads_[running_]->looking = false;
  threads_[running_]->buffer.emplace_back(to, value);
}

std::uint64_t Scheduler::load(const std::uint64_t* from) {
  step();
  Thread& self = *threads_[running_];
  if (!self.looking) self.seen = changes_;  // a look may be many loads, and a change after the first one counts
  self.looking = true;
  return peek(from);
}

std::uint64_t Scheduler::peek(const std::uint64_t* from) const {
  const auto& buffer = threads_[running_]->buffer;
  for (auto entry = buffer.rbegin(); entry != buffer.rend(); ++entry) {
    if (entry->first == from) return entry->second;
  }
  if (far(running_)) {
    for (const Crossing& each : crossings_) {
      if (each.word == from) return each.before;
    }
  }
  return *from;
}

std::uint64_t Scheduler::add(std::uint64_t* to, std::uint64_t value) {
  step();
  Thread& self = *threads_[running_];
  for (std::size_t i = 0; i < self.buffer.size();) self.buffer[i].first == to ? let_out(self, i) : void(++i);
  const std::uint64_t before = *to;
  set_word(self, to, before + value);
  return before;
}

void Scheduler::fence() {
  fence_near();
  threads_[running_]->fenced = crossings_made_;
}

void Scheduler::fence_near() {
  step();
  Thread& self = *threads_[running_];
  while (!self.buffer.empty()) let_out(self, 0);
}

void Scheduler::pause() {
  Thread& self = *threads_[running_];
  if (!self.looking) self.seen = changes_;
  self.looking = false;
  if (self.seen != changes_) return;
  self.waiting = true;
  do {
    std::vector<unsigned> options;
    for (unsigned i = 1; i <= threads_.size(); ++i) {
      const unsigned next = (running_ + i) % static_cast<unsigned>(threads_.size());
      if (can_run(*threads_[next])) options.push_back(next);
    }
    if (options.empty()) {
      if (!unstick()) fail("all threads wait for each other");
      continue;
    }
    hand_over(options[choose(static_cast<unsigned>(options.size()))]);
  } while (self.seen == changes_);
  self.waiting = false;
}

void Scheduler::fail(const std::string& what) {
  if (fault_.empty()) fault_ = what;
  abandoned_ = true;
  setcontext(&home_);
  std::abort();  // it does not come back
}

}  // namespace brant::test::model
