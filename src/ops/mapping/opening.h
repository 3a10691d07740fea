#pragma once

#include <cstdint>
#include <string>

#include "ops/mapping/imports.h"

namespace brant {

/// Maps memory that a peer describes by a record, as `Imports::open` does, and waits for what stands in the way of it:
/// the peer's answer on what it has freed, its file, memory that is to be unmapped first. `what` begins the text of a
/// failure. Not within progress. Throws timed_out after ten seconds, and what `Imports::open` says.
MappedMemory open_or_wait(Engine& engine, Imports& imports, const port::ExportRecord& record, std::uint64_t bytes,
                          std::uint64_t address, const std::string& what);

}  // namespace brant
