#include "bindings/python/program.h"

#include <nanobind/stl/string.h>

#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "bindings/python/errors.h"
#include "bindings/python/loop.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

/// Tasks of asyncio that were woken and have not run yet.
unsigned g_woken_in_asyncio = 0;

nb::object begin(double deadlock_after) {
  Process& process = Process::get();
  ChareOptions options;
  options.deadlock_after =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(deadlock_after));
  options.has_other_work = [] { return loop_has_work() || g_woken_in_asyncio != 0 || Process::get().has_finished(); };
  process.begin_program(options);
  auto [object, end] = make<ProgramEnd>();
  end->start();
  process.on_program_end(*end);
  return std::move(object);
}

/// The program ends with an error, which is told on this rank.
void fail(const std::string& text) {
  detail::Invocation nobody;
  nobody.core = &Process::get().chares().core();
  nobody.source = Process::get().runtime().rank().value;
  detail::fail_invocation(nobody, std::make_exception_ptr(Error(Status::internal, text)));
}

}  // namespace

PyObject* ProgramEnd::take() {
  if (error_ == nullptr) return Py_NewRef(Py_None);
  raise_to_awaiter(error_);
  return nullptr;
}

void ProgramEnd::end(PyObject* error) noexcept {
  error_ = error;
  answer();
  release();
}

void ProgramEnd::advance() {
  const Chares& chares = Process::get().chares();
  if (chares.exit_code() == 0) return end(nullptr);
  const std::string& here = chares.failure();
  set_python_error(
      Error(Status::internal,
            here.empty() ? "the program of chares ended with an error on another rank, which has said it" : here));
  end(take_exception());
}

void ProgramEnd::give_up(Status status) {
  set_python_error(Error(status, "the end of a program of chares was not waited for"));
  end(take_exception());
}

void bind_program(nb::module_& module) {
  const nb::class_<ProgramEnd, Awaitable> end(module, "ProgramEnd");
  module.def("begin_program", &begin);
  module.def("fail_program", &fail);
  module.def("exit_program", [](int code) { Process::get().chares().exit(code); });
  module.def("end_program", [] { Process::get().end_program(); });
  module.def("programs_begun", [] { return Process::get().program_number(); });
  module.def("has_program", [] { return Process::get().has_program(); });
  module.def("program_number", [] {
    static_cast<void>(Process::get().chares());
    return Process::get().program_number();
  });
  module.def("note_woken", [](bool woken) { g_woken_in_asyncio += woken ? 1 : -1; });
}

}  // namespace brant::python
