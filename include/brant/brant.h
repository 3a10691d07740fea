#pragma once

#if __cplusplus < 202002L
#error "brant needs C++20: compile with -std=c++20"
#endif

/// Everything a program with channels and one-sided transfers needs.
#include "brant/base/atomic.h"
#include "brant/base/buffer.h"
#include "brant/base/ids.h"
#include "brant/base/result.h"
#include "brant/base/status.h"
#include "brant/core/future.h"
#include "brant/core/operation.h"
#include "brant/core/path.h"
#include "brant/core/runtime.h"
#include "brant/core/sinks.h"
#include "brant/core/stream_done.h"
#include "brant/core/task.h"
#include "brant/core/timer.h"
#include "brant/core/window.h"
#include "brant/ops/atomics.h"
#include "brant/ops/channel.h"
#include "brant/ops/rma.h"
#include "brant/ops/stream_channel.h"
