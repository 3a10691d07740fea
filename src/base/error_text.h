#pragma once

#include <exception>
#include <string>

#include "brant/base/status.h"

namespace brant::detail {

/// What an exception says, and the status that it stands for: `Status::internal` if it is none of ours.
[[nodiscard]] std::string text_of(const std::exception_ptr& error, Status& status);

}  // namespace brant::detail
