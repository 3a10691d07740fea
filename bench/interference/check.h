#pragma once

#include <optional>
#include <span>
#include <string>

#include "brant/base/simt.h"

namespace brant::bench {

/// Looks at all words that a kernel wrote in a round: each is that of the round, and of this sweep. Without a sweep:
/// of whatever sweep, for what was sent while it was written. Throws Error internal: `what`, and the first wrong word.
void check_words(std::span<const simt::Word> words, simt::Word round, std::optional<simt::Word> sweep,
                 const std::string& what);

}  // namespace brant::bench
