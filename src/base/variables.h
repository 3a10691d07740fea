#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace brant {

/// Every BRANT_* variable that something of brant reads or sets. A test compares it with the sources.
const std::vector<std::string_view>& known_variables();

/// It looks like one of brant's, and nothing reads it: most likely a misspelling. Those of tests are nobody's business.
bool is_unread_variable(std::string_view name);

/// The known variable that `name` is most likely a misspelling of, empty if none is near.
std::string nearest_variable(std::string_view name);

}  // namespace brant
