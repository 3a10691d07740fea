#pragma once

#include <string>

namespace brant::cli::info {

/// "AMD EPYC 9575F, 2 cores": the processor, and how many cores this process may use. "unknown processor" where /proc
/// does not tell.
std::string cpu_name();

/// How many cores this process may use; its affinity mask and a container's CPU quota do count.
int usable_cores();

/// The name of this host without its domain.
std::string short_host_name();

/// The whole of a small file, empty if it cannot be read.
std::string read_file(const std::string& path);

}  // namespace brant::cli::info
