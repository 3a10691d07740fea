// Coroutines of chares: they stand in their chare's list until they end, and end with it.
#include <new>

#include <fmt/format.h>

#include "brant/chare/detail/running.h"
#include "models/chare/core.h"
#include "models/chare/mail.h"

namespace brant {

ChareBase::~ChareBase() {
  while (tasks_ != nullptr) {
    if (tasks_->invocation.reply != 0) detail::fail_unanswered(tasks_->invocation);
    tasks_->frame.destroy();  // its promise leaves the list
  }
  if (mail_ != nullptr) detail::Mail::close(*this);
}

namespace detail {

/// Of a chare that is destroyed while a coroutine of it has not answered.
void fail_unanswered(const Invocation& invocation) noexcept {
  Core& core = *invocation.core;
  if (core.ending().leaving()) return;
  try {
    const std::string text = fmt::format("{}::{} on rank {} did not answer: the chare was destroyed while it waited",
                                         Mail::name_of(*invocation.chare), invocation.entry->name, core.context().rank);
    Invocation ended = invocation;
    ended.chare = nullptr;
    core.answers().fail(ended, std::make_exception_ptr(Error(Status::not_found, text)));
  } catch (const std::bad_alloc&) {
    core.ending().fail_job("a chare that was destroyed could not tell who waits for it: memory is exhausted");
  }
}

RunningTask::RunningTask(const Invocation& of, std::coroutine_handle<> in) noexcept
    : invocation(of), frame(in), next(of.chare->tasks_), since(coarse_now()) {
  if (next != nullptr) next->previous = this;
  of.chare->tasks_ = this;
  retain_message(of);
}

RunningTask::~RunningTask() {
  (previous != nullptr ? previous->next : invocation.chare->tasks_) = next;
  if (next != nullptr) next->previous = previous;
  drop_message(invocation);
}

}  // namespace detail
}  // namespace brant
