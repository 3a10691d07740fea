#include "bench/interference/check.h"

#include <cstddef>

#include <fmt/format.h>

#include "bench/interference/steps.h"
#include "brant/base/status.h"

namespace brant::bench {

void check_words(std::span<const simt::Word> words, simt::Word round, std::optional<simt::Word> sweep,
                 const std::string& what) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const simt::Word expected = interference_steps::value_of(round, sweep.value_or(0), i);
    const bool right = sweep ? words[i] == expected : words[i] >> 32 == expected >> 32;
    if (right) continue;
    throw Error(Status::internal,
                fmt::format("{}: word {} of {} is {:#x}, not {:#x} of round {}{}", what, i, words.size(), words[i],
                            expected, round, sweep ? fmt::format(", sweep {}", *sweep) : ""));
  }
}

}  // namespace brant::bench
