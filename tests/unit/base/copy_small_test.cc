#include "base/copy_small.h"

#include <array>
#include <numeric>

#include <gtest/gtest.h>

namespace brant {
namespace {

TEST(CopySmall, copies_every_size_and_not_a_byte_beside_it) {
  std::array<std::uint8_t, 64> source;
  std::iota(source.begin(), source.end(), std::uint8_t{1});
  for (std::size_t bytes = 0; bytes <= 40; ++bytes) {
    for (const std::size_t offset : {0u, 1u, 7u}) {
      std::array<std::uint8_t, 64> target{};
      copy_small(target.data() + offset, source.data() + 3, bytes);
      for (std::size_t i = 0; i < target.size(); ++i) {
        const bool inside = i >= offset && i < offset + bytes;
        ASSERT_EQ(target[i], inside ? source[i - offset + 3] : 0) << bytes << " bytes at " << offset;
      }
    }
  }
}

TEST(CopySmall, takes_no_pointers_for_nothing) { copy_small(nullptr, nullptr, 0); }

}  // namespace
}  // namespace brant
