#include "bindings/python/collecting.h"

#include <string>

#include "bindings/python/errors.h"
#include "bindings/python/prepared_collective.h"
#include "bindings/python/team.h"

namespace nb = nanobind;

namespace brant::python {

void Collecting::start(const nb::object& timeout) {
  const double seconds = seconds_of(timeout);
  start_by([&](Op& operation) { return team_.team().post(arrays_->call(), operation); }, seconds);
}

void Collecting::start_prepared(PreparedCollective& prepared, nb::object prepared_object, const nb::object& timeout) {
  const double seconds = seconds_of(timeout);
  prepared_ = &prepared;
  prepared_object_ = std::move(prepared_object);
  start_by([&](Op& operation) { return team_.team().post(prepared.call(), operation); }, seconds);
}

void Collecting::finish() {
  result_ = outcome().ok() ? arrays_->deliver() : nb::none();
  raised_ = arrays_->raised();
  if (prepared_ != nullptr) {
    prepared_->ended();
  } else {
    arrays_->clear();
  }
}

PyObject* Collecting::take() {
  if (raised_.is_valid()) {
    raise_to_awaiter(raised_.ptr());
    return nullptr;
  }
  if (status() == Status::ok) return Py_NewRef(result_.is_valid() ? result_.ptr() : Py_None);
  const std::string what = std::string(collective_name(arrays_->kind())) + " failed";
  Failure error = failure(status(), team_.name(), -1, what);
  const std::string fault = was_given_up() ? std::string() : team_.fault();
  set_python_error(fault.empty() ? error : Failure(status(), std::string(error.what()) + ". " + fault, team_.name()));
  return nullptr;
}

}  // namespace brant::python
