#pragma once

#include <memory>
#include <string>

#include "brant/chare.h"

namespace brant::python {

/// A call of a chare of Python at work, and what its caller understands.
struct Invoked : detail::Invocation {
  Invoked() = default;
  Invoked(const detail::Invocation& invocation)  // NOLINT(google-explicit-constructor)
      : detail::Invocation(invocation) {}

  /// Of a caller in C++: the type of the answer, empty for none. Null for one in Python.
  std::shared_ptr<const std::string> answer;
};

}  // namespace brant::python
