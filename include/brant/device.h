#pragma once

/// Everything a program needs that works with device memory itself: which devices there are, streams, events, copies
/// and fills in the order of a stream, kernels. Memory comes from `Runtime::allocate`.
#include "brant/base/kernel_source.h"
#include "brant/brant.h"
#include "brant/core/device.h"
#include "brant/core/kernel.h"
#include "brant/core/stream.h"
