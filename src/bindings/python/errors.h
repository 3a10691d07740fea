#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "brant/brant.h"

/// How failures of brant become Python exceptions: the classes are those of python/brant/_errors.py.
namespace brant::python {

/// What failed with whom: fields of the Python exception. Throw it where nanobind or `guarded` catches.
class Failure : public Error {
 public:
  Failure(Status status, const std::string& text, std::string subject = {}, int peer = -1)
      : Error(status, text), subject_(std::move(subject)), peer_(peer) {}
  [[nodiscard]] const std::string& subject() const noexcept { return subject_; }
  [[nodiscard]] int peer() const noexcept { return peer_; }

 private:
  std::string subject_;
  int peer_;
};

/// "channel 7 with rank 1: the message ...: the peer process has ended (peer_lost)".
Failure failure(Status status, const std::string& subject, int peer, const std::string& what);

/// Makes it the current exception of the interpreter. The GIL is held.
void set_python_error(const Error& error) noexcept;

/// The exception that is set, with its trace: a new reference. None is set afterwards.
PyObject* take_exception() noexcept;
/// Raises it where an awaitable ends. To a coroutine StopIteration would be a result (PEP 479).
void raise_to_awaiter(PyObject* error) noexcept;

/// Puts the exception that is set aside while something else is called, and sets it again at the end: in destructors,
/// which run while somebody else's exception is on its way.
class KeptException {
 public:
  KeptException() noexcept { PyErr_Fetch(&type_, &error_, &trace_); }
  KeptException(const KeptException&) = delete;
  KeptException& operator=(const KeptException&) = delete;
  ~KeptException() { PyErr_Restore(type_, error_, trace_); }

 private:
  PyObject* type_ = nullptr;
  PyObject* error_ = nullptr;
  PyObject* trace_ = nullptr;
};

/// Tells nanobind how to translate brant::Error.
void register_errors();

/// Runs `body` in a slot of a type, which nanobind does not guard: what it throws becomes the current exception, and
/// the answer `failed`.
template <typename Body, typename Answer>
Answer guarded(Body&& body, Answer failed) noexcept {
  try {
    return body();
  } catch (nanobind::python_error& error) {
    error.restore();
  } catch (const Error& error) {
    set_python_error(error);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return failed;
}

}  // namespace brant::python
