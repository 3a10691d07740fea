#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/one_operation.h"
#include "bindings/python/view.h"
#include "brant/brant.h"
#include "brant/coll/team.h"

namespace brant::python {

class PythonTeam;

/// A collective under way: holds its arrays, and what was packed of them, until it has ended.
class Collecting final : public OneOperation {
 public:
  Collecting(PythonTeam& team, nanobind::object team_object, CollectiveKind kind) noexcept
      : team_(team), team_object_(std::move(team_object)), kind_(kind) {}

  void start(nanobind::handle array, nanobind::handle op, int root, nanobind::handle out,
             const nanobind::object& timeout);
  PyObject* take() override;

 private:
  /// An array that is given or filled: where its bytes lie together, in C order.
  struct Side {
    View view;
    std::unique_ptr<std::byte[]> packed;
    Buffer memory;
  };

  void take_side(Side& side, nanobind::handle array, View::Access access, bool filled);
  void choose_operation(nanobind::handle op, Collective& call);
  /// The array that is filled: `out`, or a new one of the shape that the kind gives.
  void take_result(nanobind::handle out, int root);
  [[nodiscard]] std::vector<Py_ssize_t> shape_of_result(int root) const;
  [[nodiscard]] bool gives(int root) const noexcept;
  [[nodiscard]] bool gets(int root) const noexcept;
  void finish() override;
  [[noreturn]] void refuse(Status status, const std::string& what) const;
  static void combine(void* self, void* accumulated, const void* next, std::uint64_t count) noexcept;

  PythonTeam& team_;
  nanobind::object team_object_;
  CollectiveKind kind_;
  Side in_;
  Side out_;
  bool in_place_ = false;  ///< `out_` alone counts, and is read too.
  nanobind::object function_;
  nanobind::object raised_;  ///< By the function.
  UserReduce user_;
  nanobind::object result_;
};

}  // namespace brant::python
