#include "ops/coll/message_rounds.h"

#include <cstring>
#include <new>
#include <utility>

namespace brant::coll {
namespace {

/// At once: then others have their turn.
constexpr unsigned kStepsOfTurn = 64;

Fault fault_of(Fault::Why why, unsigned member) noexcept {
  Fault fault;
  fault.why = why;
  fault.member = member;
  return fault;
}

}  // namespace

void MessageRounds::begin(std::uint64_t call) noexcept {
  call_ = call;
  round_ = 0;
  steps_.clear();
  next_ = 0;
}

void MessageRounds::drop_held() noexcept {
  for (am::Message*& message : held_) {
    if (message != nullptr) mail_.release(*std::exchange(message, nullptr));
  }
}

Status MessageRounds::step(const Work& work, const Plan& plan, Fault& fault) noexcept {
  blocked_ = false;
  try {
    for (unsigned done = 0; done < kStepsOfTurn; ++done) {
      while (next_ == steps_.size()) {
        if (round_ == plan.rounds) return Status::ok;
        steps_.clear();
        next_ = 0;
        add_steps(members_, work, plan, round_++, steps_);
      }
      const Status status = carry_out(steps_[next_], work, fault);
      if (status != Status::ok) return status;
      ++next_;
      ++moved_;
    }
  } catch (const std::bad_alloc&) {
    fault = fault_of(Fault::Why::no_memory, members_.self);
    return Status::no_memory;
  }
  blocked_ = true;
  return Status::in_progress;
}

Status MessageRounds::carry_out(const Step& step, const Work& work, Fault& fault) {
  switch (step.what) {
    case Step::What::send: return send(step, work, fault);
    case Step::What::receive:
    case Step::What::hold: return receive(step, work, fault);
    case Step::What::combine: combine(step, work); return Status::ok;
    case Step::What::copy: std::memmove(step.to, step.from, static_cast<std::size_t>(step.bytes)); return Status::ok;
  }
  return Status::internal;
}

Status MessageRounds::send(const Step& step, const Work& work, Fault& fault) noexcept {
  const std::byte* from = step.from == nullptr ? result_.data() : step.from;
  const Status status =
      mail_.send(step.peer, MailKind::data, call_, work.words, {from, static_cast<std::size_t>(step.bytes)});
  if (status == Status::ok) return status;
  awaited_ = step.peer;
  if (status == Status::limit_reached) {
    blocked_ = true;
    return Status::in_progress;
  }
  if (status == Status::peer_lost) {
    fault = fault_of(Fault::Why::lost, step.peer);
  } else if (status == Status::no_memory) {
    fault = fault_of(Fault::Why::no_memory, members_.self);
  } else {
    fault = fault_of(Fault::Why::network, step.peer);
  }
  return status;
}

Status MessageRounds::receive(const Step& step, const Work& work, Fault& fault) noexcept {
  const am::Message* front = mail_.front(step.peer);
  if (front == nullptr) {
    awaited_ = step.peer;
    return Status::in_progress;
  }
  const auto header = front->header<MailHeader>();
  if (header.words() != work.words || header.call != static_cast<std::uint32_t>(call_) || front->bytes != step.bytes) {
    fault = fault_of(Fault::Why::other_call, step.peer);
    fault.theirs = header.words();
    return Status::invalid_argument;
  }
  am::Message& message = mail_.take(step.peer);
  if (step.what == Step::What::hold) {
    held_[step.peer] = &message;
    return Status::ok;
  }
  if (message.bytes != 0) std::memcpy(step.to, message.data, message.bytes);
  mail_.release(message);
  return Status::ok;
}

/// Throws bad_alloc, which `step` takes.
void MessageRounds::combine(const Step& step, const Work& work) {
  inputs_.resize(step.peer);
  for (unsigned m = 0; m < step.peer; ++m) {
    inputs_[m] = m == members_.self || held_[m] == nullptr ? step.from : held_[m]->data;
  }
  std::byte* to = step.to;
  if (to == nullptr) {
    result_.resize(static_cast<std::size_t>(step.bytes));
    to = result_.data();
  }
  fold(work.folding, inputs_, to, step.bytes / work.element);
  drop_held();
}

}  // namespace brant::coll
