#pragma once

#include "brant/base/status.h"
#include "brant/core/op.h"

namespace brant {

/// Behind a post, whose outcome is `status`. One that is known at once is not reported again: a record that is posted
/// next must not fire the sinks of this post.
inline Status told_at_once(Status status, Op& op) noexcept {
  if (status == Status::in_progress || op.pending()) return status;
  op.source_free = {};
  op.delivered = {};
  return status;
}

}  // namespace brant
