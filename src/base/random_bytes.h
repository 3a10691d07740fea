#pragma once

#include <cstddef>
#include <span>

namespace brant {

/// Bytes of the kernel that nobody can foresee. Throws io_error, with `what` they are for, if it has none.
void fill_with_random_bytes(std::span<std::byte> bytes, const char* what);

}  // namespace brant
