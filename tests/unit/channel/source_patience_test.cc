#include "ops/channel/source_patience.h"

#include <gtest/gtest.h>

namespace brant {
namespace {

using namespace std::chrono_literals;

TEST(SourcePatience, is_for_all_channels_to_a_peer_together) {
  SourcePatience patience;
  EXPECT_EQ(patience.left(1), SourcePatience::kWhole);
  patience.waited(1, 2s, false);
  EXPECT_EQ(patience.left(1), SourcePatience::kWhole - 2s);
  patience.waited(1, 60s, false);
  EXPECT_EQ(patience.left(1), 0s);
  EXPECT_EQ(patience.left(2), SourcePatience::kWhole);
}

TEST(SourcePatience, comes_back_with_a_source_that_came_free) {
  SourcePatience patience;
  patience.waited(1, 60s, false);
  patience.waited(1, 0s, true);
  EXPECT_EQ(patience.left(1), SourcePatience::kWhole);
}

}  // namespace
}  // namespace brant
