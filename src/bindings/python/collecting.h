#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "bindings/python/collective_arrays.h"
#include "bindings/python/one_operation.h"
#include "brant/brant.h"
#include "brant/coll/team.h"

namespace brant::python {

class PreparedCollective;
class PythonTeam;

/// A collective under way: holds its arrays until it has ended.
class Collecting final : public OneOperation {
 public:
  Collecting(PythonTeam& team, nanobind::object team_object, std::shared_ptr<CollectiveArrays> arrays) noexcept
      : team_(team), team_object_(std::move(team_object)), arrays_(std::move(arrays)) {}

  void start(const nanobind::object& timeout);
  /// The call of `prepared`, whose arrays these are, and which it tells of its end.
  void start_prepared(PreparedCollective& prepared, nanobind::object prepared_object, const nanobind::object& timeout);
  PyObject* take() override;

 private:
  void finish() override;

  PythonTeam& team_;
  nanobind::object team_object_;
  std::shared_ptr<CollectiveArrays> arrays_;
  PreparedCollective* prepared_ = nullptr;
  nanobind::object prepared_object_;
  nanobind::object result_;
  nanobind::object raised_;
};

}  // namespace brant::python
