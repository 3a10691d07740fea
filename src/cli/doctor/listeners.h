#pragma once

#include <string>
#include <vector>

namespace brant::cli::doctor {

/// The TCP sockets of this process that wait for connections, as "0.0.0.0:4711" or "[::]:4711". From /proc; empty where
/// that is not mounted.
std::vector<std::string> own_listeners();

/// "0100007F:1267", as a table of /proc/net has it, as "127.0.0.1:4711". Empty if it is no such text.
std::string address_text(const std::string& hexadecimal);

}  // namespace brant::cli::doctor
