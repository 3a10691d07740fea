#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brant {

/// Bytes as text that files, arguments and web addresses take as it is: base64url of RFC 4648 (section 5), without
/// padding.
std::string to_base64(std::span<const std::byte> bytes);
/// Nothing if the text is not one that `to_base64` makes.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace brant
