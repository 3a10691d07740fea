#pragma once

/// Everything a program of message-driven objects needs.
#include "brant/base/archive.h"
#include "brant/brant.h"
#include "brant/chare/array.h"
#include "brant/chare/bell_calls.h"
#include "brant/chare/callback.h"
#include "brant/chare/chare.h"
#include "brant/chare/chares.h"
#include "brant/chare/device.h"
#include "brant/chare/element.h"
#include "brant/chare/index.h"
#include "brant/chare/open_channel.h"
#include "brant/chare/placement.h"
#include "brant/chare/reduce.h"
#include "brant/chare/reduction.h"
#include "brant/chare/section.h"
#include "brant/chare/when.h"
