#pragma once

#include <memory>

#include "brant/base/exchange.h"
#include "brant/core/runtime.h"

namespace brant {

/// A Runtime for processes that something else started and that can already talk to each other: beside an MPI whose
/// launcher brant does not speak, say. Collective over the processes of `exchange`, which must outlive the Runtime;
/// BRANT_BOOTSTRAP and the marks of launchers are not looked at. Throws Error: invalid_argument (ranks or sizes that
/// contradict each other), timed_out (RuntimeOptions::boot_timeout), io_error with the text of what the exchange threw,
/// and what the constructor of Runtime throws.
BRANT_API std::unique_ptr<Runtime> start_via(Exchange& exchange,
                                             const RuntimeOptions& options = RuntimeOptions::from_environment());

}  // namespace brant
