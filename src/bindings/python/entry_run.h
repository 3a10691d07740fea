#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "bindings/python/invoked.h"
#include "brant/chare.h"

/// What becomes of a call of an entry once its method has been called.
namespace brant::python {

/// Sends the result of an entry to whoever asked.
void answer_with(const Invoked& invocation, nanobind::handle result);

/// Sends the exception that is set to whoever asked, with its trace; the job ends with it if nobody did.
void fail_with(const Invoked& invocation, nanobind::handle object, unsigned method) noexcept;

/// Goes on with the coroutine that an async entry is, in whichever loop runs, and answers when it ends. It ends with
/// its chare. `unbegun` counts those of the chare that asyncio has not begun.
void run_async(const Invoked& invocation, nanobind::handle object, unsigned method, nanobind::handle coroutine,
               const std::shared_ptr<unsigned>& unbegun);

}  // namespace brant::python
