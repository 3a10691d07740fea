#include "models/mpi/tools/tool_state.h"

#include <deque>

#include "models/mpi/process.h"

namespace brant::mpi::tools {

/// It stays until the process ends: destructors of the program may call the tools interface.
ToolState& tool_state() {
  static auto& states = *new std::deque<ToolState>;
  const std::size_t slot = calling_slot();
  while (states.size() <= slot) states.emplace_back();
  return states[slot];
}

}  // namespace brant::mpi::tools
