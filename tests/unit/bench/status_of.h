#pragma once

#include <concepts>

#include "brant/base/status.h"

namespace brant::bench {

/// How it ends: `ok`, or the status of what it throws.
Status status_of(const std::invocable auto& call) {
  try {
    call();
    return Status::ok;
  } catch (const Error& fault) {
    return fault.status();
  }
}

}  // namespace brant::bench
