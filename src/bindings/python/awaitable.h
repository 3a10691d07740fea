#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "brant/base/intrusive_list.h"
#include "brant/brant.h"

namespace brant::python {

class Process;

/// What Python awaits: an operation, a task, a pause. It is under way from the moment it is made, and holds what it
/// uses (arrays, buffers) until that is over, whether or not anybody still waits for it or knows it.
///
/// It has an *answer* once the waiter can go on, and has *ended* once nothing of it is under way any more: a send that
/// timed out has an answer, and still holds its array.
///
/// Both loops can await it. Under brant's own the coroutine is resumed directly; under asyncio a future stands between
/// (python/brant/_asyncio.py).
class Awaitable {
 public:
  Awaitable() noexcept = default;
  Awaitable(const Awaitable&) = delete;
  Awaitable& operator=(const Awaitable&) = delete;
  virtual ~Awaitable();

  /// The Python object that it lies in: to be told before anything is under way.
  void set_self(PyObject* self) noexcept { self_ = self; }
  [[nodiscard]] PyObject* self() const noexcept { return self_; }

  [[nodiscard]] bool has_answer() const noexcept { return answered_; }
  /// The answer: a new reference, or null and an exception is set. Once there is one.
  virtual PyObject* take() = 0;

  /// From `Process::drain`, with the GIL: a part of it has ended, or its time is over.
  virtual void advance() = 0;
  /// Ends it with this outcome as far as possible: for a time-out, a cancel, a coroutine that was ended while it
  /// waited.
  virtual void give_up(Status status) = 0;
  /// The coroutine that waited was ended before it took the answer that had come.
  virtual void pass_by() {}

  // The protocol of awaiting.
  PySendResult send(PyObject** result) noexcept;
  /// The coroutine that waits was given an exception.
  void interrupt() noexcept;
  /// Who is told of the answer: a Task or a future of asyncio.
  void set_waiter(PyObject* waiter) noexcept;

 protected:
  /// From now on until `release` the object cannot go.
  void hold() noexcept;
  /// May destroy it: the last thing to be done with it.
  void release() noexcept;
  /// Tells who waits.
  void answer() noexcept;
  void set_deadline(double seconds);
  void clear_deadline() noexcept;
  [[nodiscard]] bool is_overdue() const noexcept { return overdue_; }

 private:
  friend class Process;
  struct Deadline : Timer {
    Awaitable* owner = nullptr;
  };

  PyObject* wait_in_asyncio();

  ListHook<Awaitable> hook_;  ///< In the process's list of what a sink was told of.
  PyObject* self_ = nullptr;  ///< Not counted.
  PyObject* waiter_ = nullptr;
  bool held_ = false;
  bool answered_ = false;
  bool overdue_ = false;
  std::optional<Deadline> deadline_;
};

/// A time-out as Python gives it: a number of seconds, negative for None. Throws invalid_argument.
double seconds_of(const nanobind::object& timeout);

/// The slots that make a Python type of it awaitable: every type derived from Awaitable inherits them.
extern PyType_Slot awaitable_slots[];

}  // namespace brant::python
