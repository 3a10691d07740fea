#pragma once

#include "port/memory.h"

namespace brant::courier {

/// The kernel for the emulated device: the stream's thread is the dispatcher, every group is a thread of its own.
void courier_on_host(const port::HostLaunch& launch) noexcept;

}  // namespace brant::courier
