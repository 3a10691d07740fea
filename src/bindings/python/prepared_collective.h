#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "bindings/python/collective_arrays.h"
#include "brant/coll/team.h"

namespace brant::python {

class PythonTeam;

/// A collective that a team has looked at once, with its arrays: called as often as wanted, one call at a time.
class PreparedCollective {
 public:
  PreparedCollective(PythonTeam& team, nanobind::object team_object, std::shared_ptr<CollectiveArrays> arrays);
  PreparedCollective(const PreparedCollective&) = delete;
  PreparedCollective& operator=(const PreparedCollective&) = delete;

  /// An awaitable; of a stream the result.
  [[nodiscard]] nanobind::object start(const nanobind::object& timeout, const nanobind::object& stream);
  [[nodiscard]] const PreparedCall& call() const noexcept { return call_; }
  void ended() noexcept { under_way_ = false; }

 private:
  PythonTeam& team_;
  nanobind::object team_object_;
  std::shared_ptr<CollectiveArrays> arrays_;
  PreparedCall call_;
  bool under_way_ = false;
};

void bind_prepared_collectives(nanobind::module_& module);

}  // namespace brant::python
