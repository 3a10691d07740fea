#pragma once

/// Everything a program needs that exchanges the ghost cells of a grid cut into blocks.
#include "brant/brant.h"
#include "brant/halo/halo_exchange.h"
#include "brant/halo/halo_modes.h"
