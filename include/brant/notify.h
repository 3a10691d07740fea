#pragma once

/// Bells between running kernels, CPUs and other processes, and kernels that stay.
#include "brant/notify/bell.h"
#include "brant/notify/notifier.h"
#include "brant/notify/persistent_kernel.h"
