#pragma once

#include <string>
#include <utility>

#include "brant/base/status.h"

namespace brant::test {

/// The text of the Error that it throws, with its status in front.
template <typename Call>
std::string refused(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const Error& error) {
    return std::string(status_name(error.status())) + ": " + error.what();
  }
  return "not refused";
}

}  // namespace brant::test
