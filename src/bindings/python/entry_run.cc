#include "bindings/python/entry_run.h"

#include <nanobind/stl/string.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <utility>

#include "bindings/python/call.h"
#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"
#include "bindings/python/running.h"
#include "bindings/python/typed_call.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

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

detail::TaskDriver<detail::RunningTask> drive(Invoked invocation, nb::object object, unsigned method,
                                              std::unique_ptr<Running> running) {
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
