#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "bindings/python/awaitable.h"

namespace brant::python {

class Task;

/// Who is told of the end of a task, in C++.
class TaskObserver {
 public:
  virtual void task_ended() noexcept = 0;

 protected:
  ~TaskObserver() = default;
};

/// A coroutine of Python that brant's own loop runs, and that others may await.
class Task final : public Awaitable {
 public:
  /// Takes a reference of `coroutine`.
  explicit Task(PyObject* coroutine) noexcept;
  ~Task() override;

  PyObject* take() override;
  void advance() override {}
  void give_up(Status status) override;

  /// Once, when it stands among the ready ones: it cannot go before it has ended.
  void start() noexcept { hold(); }
  /// Goes on with the coroutine up to where it waits next.
  void step();
  /// Null: nobody any more.
  void set_observer(TaskObserver* observer) noexcept { observer_ = observer; }
  /// Ends the coroutine where it waits, as a generator is closed.
  void close();

  ListHook<Task> ready_hook;  ///< Among those that can go on.
  ListHook<Task> all_hook;    ///< Among those that have not ended.

 private:
  void waits_for(PyObject* what);
  void finish(PyObject* result) noexcept;

  PyObject* coroutine_;
  PyObject* result_ = nullptr;
  PyObject* error_ = nullptr;
  PyObject* thrown_ = nullptr;        ///< To be raised where the coroutine waits.
  Awaitable* waiting_for_ = nullptr;  ///< Held by the coroutine itself.
  TaskObserver* observer_ = nullptr;
  bool retrieved_ = false;
};

/// `waiter` can go on: a Task, or a future of asyncio.
void wake(PyObject* waiter) noexcept;

/// Runs a coroutine to its end in brant's own loop, with all tasks that it starts. Tasks that go on when it has ended
/// are closed. Throws what it raised.
nanobind::object run(nanobind::handle coroutine);

/// Starts a task in the loop that runs now. Throws invalid_argument where none does.
nanobind::object spawn(nanobind::handle coroutine);

/// The same, and goes with it at once up to where it waits first. In a loop that runs.
std::pair<nanobind::object, Task*> spawn_now(nanobind::handle coroutine);
[[nodiscard]] bool loop_runs() noexcept;
/// Some task can go on.
[[nodiscard]] bool loop_has_work() noexcept;

/// Waits in plain code, without any loop, until it has an answer.
nanobind::object wait(Awaitable& awaitable);

/// A pause of so many seconds.
nanobind::object pause(double seconds);

void bind_loop(nanobind::module_& module);

}  // namespace brant::python
