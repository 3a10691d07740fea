#include "models/mpi/tools/tool_call.h"

#include "models/mpi/calls.h"

namespace brant::mpi::tools {

void give_text(std::string_view text, char* place, int* length) noexcept {
  if (length == nullptr) return;
  if (place != nullptr && *length > 0) store_text(text, place, *length, nullptr);
  *length = static_cast<int>(text.size()) + 1;
}

}  // namespace brant::mpi::tools
