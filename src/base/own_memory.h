#pragma once

namespace brant {

/// Whether an address is of the heap that malloc extends by brk, or of the main thread's stack. No driver of a device
/// hands out addresses there, so memory there is the host's, which nobody needs to be asked. False says nothing. Cost:
/// some comparisons.
bool is_own_memory(const void* address) noexcept;

}  // namespace brant
