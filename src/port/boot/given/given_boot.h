#pragma once

#include <memory>

#include "brant/base/exchange.h"
#include "port/boot.h"

namespace brant::port {

/// Bootstrap through an exchange that the program gives. Waits for all its processes; `exchange` must outlive it.
/// Throws Error: invalid_argument if the processes contradict each other, io_error with what the exchange threw.
std::unique_ptr<Boot> open_given_boot(Exchange& exchange);

}  // namespace brant::port
