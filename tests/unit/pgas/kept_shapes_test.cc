// Shapes as they travel to another process.
#include "models/pgas/kept_shapes.h"

#include <vector>

#include <gtest/gtest.h>

#include "support/shapes.h"

namespace brant {
namespace {

TEST(KeptShapes, come_as_they_went) {
  const test::ShapeZoo zoo(1);
  for (const auto& from : zoo.shapes()) {
    for (const auto& to : zoo.shapes()) {
      SCOPED_TRACE(from.name + " to " + to.name);
      std::vector<std::byte> packed;
      KeptShapes::pack({from.shape, to.shape}, packed);
      EXPECT_EQ(packed.size(), KeptShapes::packed_bytes({from.shape, to.shape}));
      KeptShapes kept;
      ASSERT_EQ(kept.unpack(packed), Status::ok);
      EXPECT_EQ(test::offsets_of(kept.shapes().from), test::offsets_of(from.shape));
      EXPECT_EQ(test::offsets_of(kept.shapes().to), test::offsets_of(to.shape));
    }
  }
}

TEST(KeptShapes, that_are_cut_short_or_damaged_are_refused) {
  const test::ShapeZoo zoo(1);
  for (const auto& from : zoo.shapes()) {
    std::vector<std::byte> packed;
    KeptShapes::pack({from.shape, zoo.shapes().front().shape}, packed);
    for (std::size_t bytes = 0; bytes < packed.size(); bytes += bytes < 200 ? 1 : 97)
      EXPECT_EQ(KeptShapes().unpack(std::span(packed).first(bytes)), Status::invalid_argument) << bytes;
    packed.push_back({});
    EXPECT_EQ(KeptShapes().unpack(packed), Status::invalid_argument) << "more than there should be";
    packed[0] = std::byte{9};
    EXPECT_EQ(KeptShapes().unpack(packed), Status::invalid_argument) << "no such form";
    packed[0] = std::byte{2};
    packed[7] = std::byte{255};
    EXPECT_EQ(KeptShapes().unpack(packed), Status::invalid_argument) << "a list of 4 billion runs";
  }
}

}  // namespace
}  // namespace brant
