#pragma once

#include <ucp/api/ucp.h>

#include "port/wire/ucx/open.h"
#include "port/wire/ucx/ucx_library.h"

namespace brant::port::ucx {

/// Opens a UCX context with the caller's settings, brant's defaults below them and the user's UCX_* environment above
/// both. Throws Error when UCX refuses. The caller owns the context (ucp_cleanup).
ucp_context_h open_context(const UcxLibrary& library, const UcxOptions& options);

}  // namespace brant::port::ucx
