#pragma once

#include <functional>
#include <memory>

#include "port/memory.h"
#include "port/wire.h"

namespace brant::test {

/// Hears of all device memory that the network is handed.
using DeviceMemoryTaken = std::function<void(const void* memory)>;

/// A network that takes the emulated device's memory, as UCX takes that of a GPU: what goes over it is copied to the
/// host and back behind the scenes. `device` must outlive it.
std::unique_ptr<port::Wire> make_emulated_taking(std::unique_ptr<port::Wire> inner, port::Device& device,
                                                 DeviceMemoryTaken taken = {});

}  // namespace brant::test
