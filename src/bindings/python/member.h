#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "bindings/python/call.h"
#include "brant/chare.h"

namespace brant::python {

/// An element of an array of chares: what stands for an object of Python among the chares of C++, with everything that
/// those have. All of them are of one class, with one entry that carries the number of the method.
class Member final : public ChareBase {
 public:
  /// Of arrays of so many dimensions, 1 to 6.
  static const detail::ClassInfo& class_of(int dimensions);
  static const detail::ConstructorInfo& constructor();
  static const detail::EntryInfo& entry();

  /// `table`: the functions of the entries, by their numbers.
  Member(nanobind::object object, nanobind::tuple table) noexcept
      : object_(std::move(object)), table_(std::move(table)) {}
  ~Member() = default;

  [[nodiscard]] nanobind::handle object() const noexcept { return object_; }

  // What stands in the list of classes and entries.
  static void invoke(ChareBase& target, ReadArchive& arguments, detail::Invocation& invocation);
  static ChareBase* construct(ReadArchive& arguments);

 private:
  void run(const CallContents& call, const detail::Invocation& invocation);

  nanobind::object object_;
  nanobind::tuple table_;
};

/// Where an element is: what its object of Python keeps, which must not know where it lies.
struct Place {
  detail::Target target;
  int dimensions = 1;
};

/// A tuple of coordinates and a key, in both directions. Throws InvalidArgument for what is no index.
detail::ElementKey key_of(nanobind::handle index, int dimensions);
nanobind::object index_of(const detail::ElementKey& key, int dimensions);

void bind_members(nanobind::module_& module);

}  // namespace brant::python
