#pragma once

#include "brant/core/runtime.h"

namespace brant::test {

/// The runtime of this process for all tests of the program: it is there from before the first to after the last.
/// For programs that link job_runtime.cc.
Runtime& job();

}  // namespace brant::test
