#pragma once

/// Who owns which service number of the links.
namespace brant::link_service {

inline constexpr unsigned kChannel = 0;
inline constexpr unsigned kMessage = 1;
inline constexpr unsigned kMessageLoan = 2;
inline constexpr unsigned kMapping = 3;
inline constexpr unsigned kStream = 4;

}  // namespace brant::link_service
