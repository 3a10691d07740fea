#include "bindings/python/entry_run.h"

#include <nanobind/stl/string.h>
#include <unistd.h>

#include <coroutine>
#include <exception>
#include <string>
#include <utility>

#include "bindings/python/call.h"
#include "bindings/python/errors.h"
#include "bindings/python/loop.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"
#include "bindings/python/typed_call.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

/// An async entry that is under way: awaited by a coroutine of C++, so that it ends with its chare and is named in
/// reports as others are. A task of brant's own loop, or of asyncio.
class Running final : public TaskObserver {
 public:
  /// `unbegun` counts those of its chare that asyncio has not begun.
  Running(nb::handle coroutine, const std::shared_ptr<unsigned>& unbegun) {
    if (loop_runs()) {
      auto [object, task] = spawn_now(coroutine);
      task_ = std::move(object);
      ours_ = task;
      ended_ = task->has_answer();
      if (!ended_) task->set_observer(this);
    } else {
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
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (link_ != nullptr) *link_ = nullptr;
    if (ended_ || !task_.is_valid()) return;
    if (ours_ != nullptr) {
      ours_->set_observer(nullptr);
      ours_->close();
    } else {
      PyObject* done = PyObject_CallMethod(task_.ptr(), "cancel", nullptr);
      if (done == nullptr) PyErr_WriteUnraisable(task_.ptr());
      Py_XDECREF(done);
    }
  }

  void task_ended() noexcept override {
    ended_ = true;
    if (waiter_) waiter_.resume();
  }
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }
  void set_waiter(std::coroutine_handle<> waiter) noexcept { waiter_ = waiter; }

  /// A new reference, or null and the exception is set.
  [[nodiscard]] PyObject* result() const noexcept {
    if (ours_ != nullptr) return ours_->take();
    if (error_.is_none()) return Py_NewRef(result_.ptr());
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error_.ptr())), error_.ptr());
    return nullptr;
  }

 private:
  void end_with(const nb::object& result, const nb::object& error) noexcept {
    result_ = result;
    error_ = error;
    task_ended();
  }

  nb::object task_;
  Task* ours_ = nullptr;
  std::shared_ptr<Running*> link_;  ///< From the task of asyncio, which may outlive this.
  nb::object result_;
  nb::object error_;
  std::coroutine_handle<> waiter_;
  bool ended_ = false;
};

/// What is awaited of it.
struct EndOf {
  Running& running;
  [[nodiscard]] bool await_ready() const noexcept { return running.has_ended(); }
  void await_suspend(std::coroutine_handle<> waiter) const noexcept { running.set_waiter(waiter); }
  void await_resume() const noexcept {}
};

void conclude(const Invoked& invocation, nb::handle object, unsigned method, PyObject* result) noexcept {
  const bool answered = result != nullptr && guarded(
                                                 [&] {
                                                   answer_with(invocation, result);
                                                   return true;
                                                 },
                                                 false);
  Py_XDECREF(result);
  if (!answered) fail_with(invocation, object, method);
}

/// Says that an entry has not come to its end because its chare was destroyed: not at the end of the program.
class Dropped {
 public:
  Dropped(nb::object object, unsigned method) noexcept : object_(std::move(object)), method_(method) {}
  Dropped(const Dropped&) = delete;
  Dropped& operator=(const Dropped&) = delete;
  ~Dropped() {
    const Process& process = Process::get();
    if (ended_ || !process.has_program() || Process::get().chares().ended()) return;
    static const nb::handle warn = python_function("brant._chares", "warn_of_dropped");
    guarded([&] { return warn(object_, method_).is_valid(); }, false);
    if (PyErr_Occurred() != nullptr) PyErr_WriteUnraisable(object_.ptr());
  }
  void has_ended() noexcept { ended_ = true; }

 private:
  nb::object object_;
  unsigned method_;
  bool ended_ = false;
};

detail::Driver drive(Invoked invocation, nb::object object, unsigned method, std::unique_ptr<Running> running) {
  Dropped dropped(object, method);
  co_await EndOf{*running};
  dropped.has_ended();
  conclude(invocation, object, method, running->result());
}

/// To a caller in C++, who has said what the answer is.
void answer_cpp(const Invoked& invocation, nb::handle result) {
  TypedCall typed("a chare of Python was asked by C++");
  if (!invocation.answer->empty()) typed.add(*invocation.answer, result, "what it returns");
  detail::Outgoing outgoing = detail::open_reply(invocation, typed.bytes_behind(0));
  typed.write_behind(0, outgoing.args);
  detail::post(*invocation.core, outgoing);
}

}  // namespace

void answer_with(const Invoked& invocation, nb::handle result) {
  // An entry that forked has come back in the child, which has no part in the job: the parent answers.
  if (!Process::get().is_owner()) ::_exit(0);
  if (invocation.reply == 0) return;
  if (invocation.answer != nullptr) return answer_cpp(invocation, result);
  CallPacker packer(0);
  packer.add(result);
  detail::Outgoing outgoing = detail::open_reply(invocation, packer.finish());
  packer.write(outgoing.args);
  detail::post(*invocation.core, outgoing);
}

void fail_with(const Invoked& invocation, nb::handle object, unsigned method) noexcept {
  if (!Process::get().is_owner()) {
    PyErr_Print();
    ::_exit(1);
  }
  const nb::object error = nb::steal(take_exception());
  detail::Invocation nameless = invocation;
  nameless.chare = nullptr;  // the text names it
  try {
    static const nb::handle describe = python_function("brant._chares", "describe_failure");
    const auto described = nb::cast<nb::tuple>(describe(object, method, error));
    if (invocation.reply != 0 && invocation.answer == nullptr) {
      CallPacker packer(0, CallHeader::kException);
      packer.add(described);
      detail::Outgoing outgoing = detail::open_reply(invocation, packer.finish());
      packer.write(outgoing.args);
      detail::post(*invocation.core, outgoing);
    } else {
      const Error failure(Status::internal, nb::cast<std::string>(described[1]));
      detail::fail_invocation(nameless, std::make_exception_ptr(failure));
    }
  } catch (const std::exception& trouble) {
    const Error failure(Status::internal,
                        std::string("an exception of a chare of Python could not be told: ") + trouble.what());
    detail::fail_invocation(nameless, std::make_exception_ptr(failure));
  }
}

void run_async(const Invoked& invocation, nb::handle object, unsigned method, nb::handle coroutine,
               const std::shared_ptr<unsigned>& unbegun) {
  auto running = std::make_unique<Running>(coroutine, unbegun);
  if (running->has_ended()) return conclude(invocation, object, method, running->result());
  drive(invocation, nb::borrow(object), method, std::move(running));
}

}  // namespace brant::python
