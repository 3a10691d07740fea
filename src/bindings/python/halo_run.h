#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "bindings/python/awaitable.h"
#include "bindings/python/view.h"

namespace brant::python {

class Halo;

/// An exchange of a Halo under way, or its fields being made known: holds it and the fields until that has ended.
class HaloRun final : public Awaitable {
 public:
  /// `tells`: other processes are told of these fields, and are to write into them.
  HaloRun(Halo& halo, nanobind::object halo_object, std::shared_ptr<std::deque<View>> fields, bool tells) noexcept
      : halo_(halo), halo_object_(std::move(halo_object)), fields_(std::move(fields)), tells_(tells) {}

  void start(brant::Task<void> steps);

  PyObject* take() override;
  void advance() override;
  /// It ends here and now, and with it the exchange: nothing touches the fields any more when this returns.
  void give_up(Status status) override;

 private:
  brant::Task<void> drive(brant::Task<void> steps);
  void end() noexcept;

  Halo& halo_;
  nanobind::object halo_object_;
  std::shared_ptr<std::deque<View>> fields_;
  const bool tells_;
  std::exception_ptr error_;
  std::optional<brant::Task<void>> task_;  ///< Goes before the fields do.
};

}  // namespace brant::python
