#pragma once

#include <string_view>

#include "bindings/python/frame.h"
#include "brant/core/runtime.h"

/// Pickles carry the seal of the job, where an array has its format: `pickle.loads` runs what a pickle says, so it is
/// asked for none that some other process may have sent.
namespace brant::python {

/// As soon as this process has its Runtime. Throws what JobSeal throws.
void make_pickle_seal(Runtime& runtime);
/// What this process's pickles carry.
[[nodiscard]] std::string_view pickle_seal();
/// Whether an item may be read: it is no pickle, or one of this job.
[[nodiscard]] bool may_be_read(const Item& item);

inline constexpr const char* kUnsealed =
    "a pickle came without the seal of this job, so from a process that is not of it, and is not read. Cure: keep "
    "strangers off the network of the job (docs/guide/network.md)";

}  // namespace brant::python
