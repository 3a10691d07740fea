#include <gtest/gtest.h>

#include "ops/channel/channel_peer.h"

namespace brant {
namespace {

using namespace std::chrono_literals;

TEST(SourcePatience, is_for_all_channels_to_a_peer_together) {
  SourcePatience patience;
  EXPECT_EQ(patience.left(), SourcePatience::kWhole);
  patience.waited(2s, false);
  EXPECT_EQ(patience.left(), SourcePatience::kWhole - 2s);
  patience.waited(60s, false);
  EXPECT_EQ(patience.left(), 0s);
}

TEST(SourcePatience, comes_back_with_a_source_that_came_free) {
  SourcePatience patience;
  patience.waited(60s, false);
  patience.waited(0s, true);
  EXPECT_EQ(patience.left(), SourcePatience::kWhole);
}

}  // namespace
}  // namespace brant
