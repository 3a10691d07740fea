#pragma once

/// Global pointers, segments of any kind of memory, and copies between any two places of them.
#include "brant/pgas/copy_options.h"
#include "brant/pgas/global_ptr.h"
#include "brant/pgas/global_segment.h"
#include "brant/pgas/global_space.h"
