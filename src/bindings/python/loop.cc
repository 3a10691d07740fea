#include "bindings/python/loop.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

/// Before the loop sleeps without the GIL it looks for so long with it: to give it up and to take it costs a quarter of
/// a microsecond, and other threads get it in time.
constexpr auto kSpinWithGil = std::chrono::microseconds(20);
/// After so many steps in a row the network gets a turn.
constexpr unsigned kStepsInARow = 64;

using ReadyTasks = IntrusiveList<Task, &Task::ready_hook>;
using AllTasks = IntrusiveList<Task, &Task::all_hook>;

struct Loop {
  ReadyTasks ready;
  AllTasks all;
  bool runs = false;
};

Loop& loop() {
  static Loop only;
  return only;
}

class Pause final : public Awaitable {
 public:
  explicit Pause(double seconds) : seconds_(seconds) {}
  void start() {
    set_deadline(seconds_);
    hold();
  }
  PyObject* take() override {
    if (canceled_) set_python_error(Error(Status::canceled, "a pause was cancelled"));
    return canceled_ ? nullptr : Py_NewRef(Py_None);
  }
  void advance() override {
    answer();
    release();
  }
  void give_up(Status) override {
    canceled_ = true;
    advance();
  }

 private:
  double seconds_;
  bool canceled_ = false;
};

void run_ready(Loop& loop) {
  for (unsigned steps = 0; steps < kStepsInARow; ++steps) {
    Task* task = loop.ready.pop_front();
    if (task == nullptr) return;
    const nb::object keeps = nb::borrow(task->self());
    task->step();
  }
}

void run_until_answer(Loop& loop, Task& main) {
  Process& process = Process::get();
  while (!main.has_answer()) {
    run_ready(loop);
    if (main.has_answer()) return;
    const bool busy = !loop.ready.empty();
    if (process.turn(busy ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(kSpinWithGil))) continue;
    if (!busy) {
      process.sleep();
    } else if (PyErr_CheckSignals() != 0) {
      throw nb::python_error();
    }
  }
}

/// What is under way is withdrawn by the thread that moves it: throws not_supported in another, and in a forked child.
/// After the end nothing moves any more.
void check_thread() {
  Process& process = Process::get();
  if (!process.has_ended()) static_cast<void>(process.runtime());
}

/// What a coroutine is given instead of an answer, as `throw` of generators takes it.
[[noreturn]] void raise_thrown(const nb::args& thrown) {
  const nb::handle first = thrown.size() != 0 ? thrown[0] : nb::handle(Py_None);
  if (PyExceptionInstance_Check(first.ptr())) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(first.ptr())), first.ptr());
  } else if (PyExceptionClass_Check(first.ptr())) {
    PyErr_SetObject(first.ptr(), thrown.size() > 1 ? thrown[1].ptr() : Py_None);
  } else {
    PyErr_Format(PyExc_TypeError, "throw takes an exception, not %R", first.ptr());
  }
  throw nb::python_error();
}

void close_all(Loop& loop) {
  while (Task* task = loop.all.front()) {
    const nb::object keeps = nb::borrow(task->self());
    task->close();
  }
}

}  // namespace

Task::Task(PyObject* coroutine) noexcept : coroutine_(Py_NewRef(coroutine)) {}

Task::~Task() {
  if (ready_hook.linked()) loop().ready.remove(*this);
  if (all_hook.linked()) loop().all.remove(*this);
  if (error_ != nullptr && !retrieved_) {
    const KeptException of_others;  // of whoever lets go of it
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error_)), error_);
    PyErr_WriteUnraisable(coroutine_);  // nobody will ever ask for it
  }
  Py_XDECREF(error_);
  Py_XDECREF(thrown_);
  Py_XDECREF(result_);
  Py_DECREF(coroutine_);
}

PyObject* Task::take() {
  retrieved_ = true;
  if (error_ == nullptr) return Py_NewRef(result_);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error_)), error_);
  return nullptr;
}

void Task::finish(PyObject* result) noexcept {
  result_ = result;
  if (result == nullptr) error_ = take_exception();
  if (all_hook.linked()) loop().all.remove(*this);
  if (ready_hook.linked()) loop().ready.remove(*this);  // it was cancelled by itself
  Py_XDECREF(std::exchange(thrown_, nullptr));
  answer();
  if (TaskObserver* observer = std::exchange(observer_, nullptr)) observer->task_ended();
  release();
}

void Task::step() {
  Process& process = Process::get();
  Task* const outer = std::exchange(process.current, this);
  waiting_for_ = nullptr;
  PyObject* result = nullptr;
  PySendResult how = PYGEN_ERROR;
  if (PyObject* thrown = std::exchange(thrown_, nullptr)) {
    result = PyObject_CallMethod(coroutine_, "throw", "O", thrown);
    Py_DECREF(thrown);
    how = result != nullptr ? PYGEN_NEXT : PYGEN_ERROR;
    if (result == nullptr && PyErr_ExceptionMatches(PyExc_StopIteration)) {
      PyObject* stop = take_exception();
      result = PyObject_GetAttrString(stop, "value");
      how = PYGEN_RETURN;
      Py_DECREF(stop);
    }
  } else {
    how = PyIter_Send(coroutine_, Py_None, &result);
  }
  process.current = outer;
  if (how != PYGEN_NEXT) return finish(result);
  waits_for(result);
  Py_DECREF(result);
}

void Task::waits_for(PyObject* what) {
  if (nb::isinstance<Awaitable>(what)) {
    Awaitable& awaitable = *nb::inst_ptr<Awaitable>(what);
    if (awaitable.has_answer()) return loop().ready.push_back(*this);
    awaitable.set_waiter(self());
    waiting_for_ = &awaitable;
    return;
  }
  if (what == Py_None) return loop().ready.push_back(*this);  // it only lets others run
  PyErr_Format(
      PyExc_RuntimeError,
      "brant's own loop cannot await %R: use asyncio.run instead of brant.run to await what belongs to asyncio", what);
  thrown_ = take_exception();
  loop().ready.push_back(*this);
}

void Task::give_up(Status status) {
  if (has_answer()) return;
  if (thrown_ == nullptr) {
    set_python_error(Error(status, "a task was cancelled"));
    thrown_ = take_exception();
  }
  if (Awaitable* was = std::exchange(waiting_for_, nullptr)) was->interrupt();
  if (!ready_hook.linked()) loop().ready.push_back(*this);
}

void Task::close() {
  if (ready_hook.linked()) loop().ready.remove(*this);
  if (Awaitable* was = std::exchange(waiting_for_, nullptr)) was->interrupt();
  PyObject* closed = PyObject_CallMethod(coroutine_, "close", nullptr);
  if (closed != nullptr) {
    Py_DECREF(closed);
    set_python_error(Error(Status::canceled, "the loop ended before this task did"));
    retrieved_ = true;
  }
  if (ready_hook.linked()) loop().ready.remove(*this);
  finish(nullptr);
}

void wake(PyObject* waiter) noexcept {
  if (nb::isinstance<Task>(waiter)) {
    Task& task = *nb::inst_ptr<Task>(waiter);
    if (!task.has_answer() && !task.ready_hook.linked()) loop().ready.push_back(task);
    return;
  }
  PyObject* done = PyObject_CallMethod(waiter, "done", nullptr);
  if (done == Py_False) {
    Py_XDECREF(PyObject_CallMethod(waiter, "set_result", "O", Py_None));
    static const nb::handle note_woken = python_function("brant._asyncio", "note_woken");
    if (Process::get().has_program()) Py_XDECREF(PyObject_CallNoArgs(note_woken.ptr()));
  }
  Py_XDECREF(done);
  if (PyErr_Occurred() != nullptr) PyErr_WriteUnraisable(waiter);
}

nb::object spawn(nb::handle coroutine) {
  Loop& all = loop();
  if (!all.runs)
    throw Error(Status::invalid_argument,
                "brant.spawn starts a task in brant's own loop, and none runs: call it from "
                "a coroutine that brant.run runs, or use asyncio.create_task");
  if (PyCoro_CheckExact(coroutine.ptr()) == 0)
    throw nb::type_error("brant.spawn and brant.run take a coroutine: call the async function");
  auto [object, task] = make<Task>(coroutine.ptr());
  all.ready.push_back(*task);
  all.all.push_back(*task);
  task->start();
  return object;
}

std::pair<nb::object, Task*> spawn_now(nb::handle coroutine) {
  auto made = make<Task>(coroutine.ptr());
  loop().all.push_back(*made.second);
  made.second->start();
  made.second->step();
  return made;
}

bool loop_runs() noexcept { return loop().runs; }
bool loop_has_work() noexcept { return !loop().ready.empty(); }

nb::object run(nb::handle coroutine) {
  Loop& all = loop();
  if (all.runs) throw nb::type_error("brant.run is running already: await the coroutine instead");
  Process::get().runtime();
  all.runs = true;
  nb::object main;
  try {
    main = spawn(coroutine);
    run_until_answer(all, *nb::inst_ptr<Task>(main));
  } catch (...) {
    close_all(all);
    all.runs = false;
    throw;
  }
  close_all(all);
  all.runs = false;
  PyObject* result = nb::inst_ptr<Task>(main)->take();
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

nb::object wait(Awaitable& awaitable) {
  Process& process = Process::get();
  process.runtime();
  if (process.current != nullptr || process.in_entry())
    throw nb::type_error("wait() would block the loop: await it, in an entry that is async");
  while (!awaitable.has_answer()) {
    if (!process.turn(kSpinWithGil)) process.sleep();
  }
  PyObject* result = awaitable.take();
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

nb::object pause(double seconds) {
  Process::get().runtime();
  if (std::isnan(seconds)) throw Error(Status::invalid_argument, "a pause is a number of seconds, and nan is none");
  auto [object, started] = make<Pause>(seconds);
  started->start();
  return object;
}

void bind_loop(nb::module_& module) {
  nb::class_<Awaitable>(module, "Awaitable", nb::type_slots(awaitable_slots), nb::is_weak_referenceable())
      .def("done", &Awaitable::has_answer, "There is an answer: awaiting it does not wait.")
      .def("cancel",
           [](Awaitable& self) {
             check_thread();
             if (!self.has_answer()) self.give_up(Status::canceled);
           })
      .def("wait", &wait, "Waits in plain code, without the GIL.")
      .def("throw",
           [](Awaitable& self, const nb::args& thrown) {
             check_thread();
             self.interrupt();
             raise_thrown(thrown);
           })
      .def("close", [](Awaitable& self) {
        check_thread();
        self.interrupt();
      });
  const nb::class_<Task, Awaitable> task(module, "Task");
  const nb::class_<Pause, Awaitable> pause_type(module, "Pause");
  module.def("run", &run, "Runs a coroutine in brant's own loop, to its end.");
  module.def("spawn", &spawn, "Starts a coroutine beside the one that calls it, in brant's own loop.");
  module.def("loop_runs", &loop_runs);
  module.def("sleep", &pause, "A pause of so many seconds, under either loop.");
}

}  // namespace brant::python
