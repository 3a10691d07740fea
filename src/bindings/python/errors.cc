#include "bindings/python/errors.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

void raise(const Error& error) {
  const auto* detail = dynamic_cast<const Failure*>(&error);
  const nb::str status(status_name(error.status()).data(), status_name(error.status()).size());
  const nb::object subject = detail != nullptr && !detail->subject().empty()
                                 ? nb::object(nb::str(detail->subject().c_str()))
                                 : nb::object(nb::none());
  const nb::object peer =
      detail != nullptr && detail->peer() >= 0 ? nb::object(nb::int_(detail->peer())) : nb::object(nb::none());
  const nb::object exception = nb::module_::import_("brant._errors").attr("make")(status, error.what(), subject, peer);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

}  // namespace

Failure failure(Status status, const std::string& subject, int peer, const std::string& what) {
  return {
      status,
      subject + ": " + what + ": " + std::string(status_text(status)) + " (" + std::string(status_name(status)) + ")",
      subject, peer};
}

void set_python_error(const Error& error) noexcept {
  try {
    raise(error);
  } catch (nb::python_error& trouble) {
    trouble.restore();
  } catch (const std::exception& trouble) {
    PyErr_SetString(PyExc_RuntimeError, trouble.what());
  }
}

PyObject* take_exception() noexcept {
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  if (trace != nullptr) PyException_SetTraceback(error, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return error;
}

void raise_to_awaiter(PyObject* error) noexcept {
  if (PyErr_GivenExceptionMatches(error, PyExc_StopIteration) == 0)
    return PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  PyErr_SetString(PyExc_RuntimeError, "what is awaited raised StopIteration");
}

void register_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      set_python_error(error);
    }
  });
}

}  // namespace brant::python
