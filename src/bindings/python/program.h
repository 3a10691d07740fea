#pragma once

#include <nanobind/nanobind.h>

#include "bindings/python/awaitable.h"

namespace brant::python {

/// The end of a program of chares, on every rank. Raises what ended it if that was an error.
class ProgramEnd final : public Awaitable {
 public:
  void start() noexcept { hold(); }
  PyObject* take() override;
  void advance() override;
  /// The program goes on: only who waits for it is told.
  void give_up(Status status) override;

 private:
  void end(PyObject* error) noexcept;

  PyObject* error_ = nullptr;
};

void bind_program(nanobind::module_& module);

}  // namespace brant::python
