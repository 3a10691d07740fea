#include "bindings/python/awaitable.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "bindings/python/errors.h"
#include "bindings/python/loop.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

/// What awaits in asyncio looks at the network for so long before it gives the turn back to the loop, whose own way
/// around costs several microseconds; and so often in a row, since others wait for that loop too.
constexpr auto kSpinBeforeAsyncio = std::chrono::microseconds(5);
constexpr unsigned kSpinsInARow = 32;
constexpr double kNoLimit = -1;
unsigned g_spins = 0;

Awaitable& of(PyObject* self) noexcept { return *nb::inst_ptr<Awaitable>(self); }

PyObject* await_slot(PyObject* self) noexcept {
  Py_INCREF(self);
  return self;
}

PyObject* next_slot(PyObject* self) noexcept {
  PyObject* result = nullptr;
  const PySendResult how = of(self).send(&result);
  if (how == PYGEN_NEXT) return result;
  if (how == PYGEN_RETURN) {
    // An iterator's way to return a value.
    if (result != Py_None) {
      PyObject* stop = PyObject_CallOneArg(PyExc_StopIteration, result);
      if (stop != nullptr) PyErr_SetObject(PyExc_StopIteration, stop);
      Py_XDECREF(stop);
    }
    Py_DECREF(result);
  }
  return nullptr;
}

PySendResult send_slot(PyObject* self, PyObject*, PyObject** result) noexcept { return of(self).send(result); }

}  // namespace

PyType_Slot awaitable_slots[] = {
    {Py_am_await, reinterpret_cast<void*>(await_slot)},
    {Py_tp_iter, reinterpret_cast<void*>(await_slot)},
    {Py_tp_iternext, reinterpret_cast<void*>(next_slot)},
    {Py_am_send, reinterpret_cast<void*>(send_slot)},
    {0, nullptr},
};

double seconds_of(const nb::object& timeout) {
  if (timeout.is_none()) return kNoLimit;
  const double seconds = PyFloat_AsDouble(timeout.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (!(seconds >= 0)) throw Error(Status::invalid_argument, "a time-out is a number of seconds, 0 or more, or None");
  return seconds;
}

Awaitable::~Awaitable() {
  Process::get().forget(*this);
  clear_deadline();
  Py_XDECREF(std::exchange(waiter_, nullptr));
}

PySendResult Awaitable::send(PyObject** result) noexcept {
  *result = nullptr;
  return guarded(
      [&] {
        Process& process = Process::get();
        if (!answered_ && process.current == nullptr && g_spins < kSpinsInARow) {
          ++g_spins;
          const auto deadline = Clock::now() + kSpinBeforeAsyncio;
          while (!answered_ && Clock::now() < deadline) process.turn(std::chrono::nanoseconds(0));
        }
        if (answered_) {
          *result = take();
          return *result != nullptr ? PYGEN_RETURN : PYGEN_ERROR;
        }
        if (static_cast<Awaitable*>(process.current) == this) throw std::runtime_error("a task cannot await itself");
        if (waiter_ != nullptr)
          throw std::runtime_error("this operation is awaited already: one coroutine at a time can wait for it");
        if (process.current != nullptr) {
          Py_INCREF(self_);  // the loop makes its task the waiter
          *result = self_;
        } else {
          g_spins = 0;
          *result = wait_in_asyncio();
        }
        return *result != nullptr ? PYGEN_NEXT : PYGEN_ERROR;
      },
      PYGEN_ERROR);
}

PyObject* Awaitable::wait_in_asyncio() {
  nb::object future = nb::module_::import_("brant._asyncio").attr("make_future")();
  set_waiter(future.ptr());
  return future.release().ptr();
}

void Awaitable::set_waiter(PyObject* waiter) noexcept {
  PyObject* before = std::exchange(waiter_, Py_NewRef(waiter));
  Py_XDECREF(before);
}

void Awaitable::interrupt() noexcept {
  Py_XDECREF(std::exchange(waiter_, nullptr));
  answered_ ? pass_by() : give_up(Status::canceled);
}

void Awaitable::hold() noexcept {
  if (std::exchange(held_, true)) return;
  Py_INCREF(self_);
}

void Awaitable::release() noexcept {
  if (std::exchange(held_, false)) Py_DECREF(self_);
}

void Awaitable::answer() noexcept {
  if (std::exchange(answered_, true)) return;
  clear_deadline();
  PyObject* waiter = std::exchange(waiter_, nullptr);
  if (waiter == nullptr) return;
  wake(waiter);
  Py_DECREF(waiter);
}

void Awaitable::set_deadline(double seconds) {
  deadline_.emplace();
  deadline_->owner = this;
  deadline_->fire = [](Timer& self) noexcept {
    Awaitable& owner = *static_cast<Deadline&>(self).owner;
    owner.overdue_ = true;
    Process::get().ended(owner);
  };
  const auto limit = std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e9));
  Process::get().runtime().worker().set_timer(
      *deadline_, deadline_after(std::chrono::duration_cast<std::chrono::nanoseconds>(limit)));
}

void Awaitable::clear_deadline() noexcept {
  if (deadline_ && deadline_->place != Timer::kIdle && Process::get().is_running())
    Process::get().runtime().worker().clear_timer(*deadline_);
  deadline_.reset();
}

}  // namespace brant::python
