#pragma once

#include "brant/base/status.h"

namespace brant::halo {

/// Throws for anything but ok.
inline void require(Status status, const char* what) {
  if (status != Status::ok) throw_error(status, what);
}

}  // namespace brant::halo
