#include "bindings/python/running.h"

#include "bindings/python/make.h"

namespace nb = nanobind;

namespace brant::python {

Running::Running(nb::handle coroutine, const std::shared_ptr<unsigned>& unbegun) {
  if (loop_runs()) {
    auto [object, task] = spawn_now(coroutine);
    task_ = std::move(object);
    ours_ = task;
    ended_ = task->has_answer();
    if (!ended_) task->set_observer(this);
    return;
  }
  static const nb::handle start = python_function("brant._asyncio", "start_entry");
  link_ = std::make_shared<Running*>(this);
  const auto on_end = [link = link_](const nb::object& result, const nb::object& error) {
    if (*link != nullptr) (*link)->end_with(result, error);
  };
  ++*unbegun;
  const auto on_begin = [unbegun] { --*unbegun; };
  task_ = start(coroutine, nb::cpp_function(on_begin),
                nb::cpp_function(on_end, nb::arg("result").none(), nb::arg("error").none()));
}

Running::~Running() {
  if (link_ != nullptr) *link_ = nullptr;
  if (ended_ || !task_.is_valid()) return;
  if (ours_ != nullptr) {
    ours_->set_observer(nullptr);
    ours_->close();
    return;
  }
  PyObject* done = PyObject_CallMethod(task_.ptr(), "cancel", nullptr);
  if (done == nullptr) PyErr_WriteUnraisable(task_.ptr());
  Py_XDECREF(done);
}

void Running::task_ended() noexcept {
  ended_ = true;
  if (waiter_) waiter_.resume();
}

PyObject* Running::result() const noexcept {
  if (ours_ != nullptr) return ours_->take();
  if (error_.is_none()) return Py_NewRef(result_.ptr());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error_.ptr())), error_.ptr());
  return nullptr;
}

void Running::end_with(const nb::object& result, const nb::object& error) noexcept {
  result_ = result;
  error_ = error;
  task_ended();
}

}  // namespace brant::python
