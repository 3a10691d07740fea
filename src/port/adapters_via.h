#pragma once

#include "brant/base/exchange.h"
#include "port/adapters.h"

namespace brant::port {

/// As open_adapters, for processes that exchange their records by what the program gives. It must outlive the
/// bootstrap.
Adapters open_adapters_via(Exchange& exchange, const AdapterRequest& request);

}  // namespace brant::port
