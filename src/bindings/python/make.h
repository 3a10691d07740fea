#pragma once

#include <nanobind/nanobind.h>

#include <new>
#include <utility>

namespace brant::python {

/// A Python object of a bound class, and the C++ object in it, which learns what it lies in.
template <typename T, typename... Args>
std::pair<nanobind::object, T*> make(Args&&... args) {
  static const nanobind::handle type = nanobind::type<T>();
  nanobind::object object = nanobind::inst_alloc(type);
  T* const made = new (nanobind::inst_ptr<void>(object)) T(std::forward<Args>(args)...);
  nanobind::inst_mark_ready(object);
  made->set_self(object.ptr());
  return {std::move(object), made};
}

/// A function of the package, for a static: looked up once, and never given back.
inline nanobind::handle python_function(const char* module, const char* name) {
  return nanobind::object(nanobind::module_::import_(module).attr(name)).release();
}

}  // namespace brant::python
