#pragma once

#include <memory>

#include "port/boot.h"

namespace brant::port {

/// Bootstrap through the TCPStore that an agent of torchrun keeps at MASTER_ADDR:MASTER_PORT; over TCP, so for several
/// hosts as well. brant is a client of it and never listens there. Throws Error that names host, port and rank:
/// invalid_argument for variables that contradict each other or the other processes, peer_rejected if no store is
/// there within 20 s or BRANT_BOOT_TIMEOUT_MS, whichever is shorter.
///
/// The store says nothing about processes that end: a fence waits for them until its time-out, which names them. An
/// agent ends all its processes when one fails.
std::unique_ptr<Boot> open_tcp_store_boot();

}  // namespace brant::port
