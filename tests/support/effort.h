#pragma once

namespace brant::test {

/// Whether a sanitizer watches memory or threads: what touches many bytes then takes ten times as long and more.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// How often a test repeats what it does, or how much it moves: `all`, or under a sanitizer `few`, which must still
/// reach every case. For tests that more of the same makes surer, not other.
template <typename Count>
constexpr Count effort(Count all, Count few) {
  return kSanitized ? few : all;
}

}  // namespace brant::test
