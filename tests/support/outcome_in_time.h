#pragma once

#include <chrono>

#include "brant/core/operation.h"
#include "brant/core/runtime.h"
#include "support/killed_process.h"

namespace brant::test {

/// How an operation ends; in a process of a scene, which fails if that takes twenty seconds.
inline Status outcome_in_time(Runtime& runtime, const Operation& operation) {
  if (runtime.worker().wait_until([&] { return operation.done(); }, std::chrono::seconds(20)) != Status::ok) {
    fail(runtime.rank().value, "something hangs");
  }
  return operation.result().status;
}

}  // namespace brant::test
