#pragma once

#include "brant/base/intrusive_list.h"

namespace brant {

/// What may wait for all that the device does, and so is not done in progress (`ProgressScope`): freeing memory of the
/// device, closing what was mapped. It stands in the engine's list (`Deferrals::defer`) until the program waits and
/// nothing comes, says that it can be done (`Runtime::tidy`), or ends.
class DeferredWork {
 public:
  ListHook<DeferredWork> deferred_hook;
  /// All of it. May defer itself again.
  virtual void run_deferred() noexcept = 0;

 protected:
  ~DeferredWork() = default;
};

}  // namespace brant
