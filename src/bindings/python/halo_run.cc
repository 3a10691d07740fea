#include "bindings/python/halo_run.h"

#include "bindings/python/errors.h"
#include "bindings/python/halo.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {

brant::Task<void> HaloRun::drive(brant::Task<void> steps) {
  try {
    co_await std::move(steps);
  } catch (const std::exception&) {
    error_ = std::current_exception();
  }
  Process::get().ended(*this);
}

void HaloRun::start(brant::Task<void> steps) {
  hold();
  halo_.running_ = this;
  task_.emplace(drive(std::move(steps)));
  const nb::gil_scoped_release others_run;  // the CPU may pack all of it in here
  task_->start();
}

void HaloRun::advance() {
  if (!has_answer()) end();
}

void HaloRun::end() noexcept {
  const nb::object keeps = nb::borrow(self());
  halo_.running_ = nullptr;
  task_.reset();
  if (tells_) halo_.keep(std::move(fields_), error_ == nullptr);
  fields_.reset();
  answer();
  release();
}

void HaloRun::give_up(Status status) {
  if (has_answer()) return;
  if (!task_->finished()) {
    error_ = std::make_exception_ptr(Error(status,
                                           "halo: an exchange was given up under way, and its channels are "
                                           "closed"));
    halo_.failure_ = error_;
  }
  end();
}

PyObject* HaloRun::take() {
  if (error_ == nullptr) return Py_NewRef(Py_None);
  return guarded([&]() -> PyObject* { std::rethrow_exception(error_); }, static_cast<PyObject*>(nullptr));
}

}  // namespace brant::python
