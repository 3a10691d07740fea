// Bands that a calibration has: which ones a team takes.
#include "ops/coll/measured_bands.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/paths/calibration_text.h"

namespace brant::coll {
namespace {

const std::vector<CollectiveBand> kKnown = {
    {"slices", 2, 4096},          {"slices", 4, 16'384},     {"reads", 2, 65'536},
    {"kernel_lines", 2, 262'143}, {"kernel_slices", 4, 777}, {"of_another_release", 2, 5},
};

TEST(MeasuredBands, of_the_host_are_those_of_the_nearest_number_of_members) {
  EXPECT_EQ(measured_bands(kKnown, 2).slices_from, 4096u);
  EXPECT_EQ(measured_bands(kKnown, 3).slices_from, 4096u);
  EXPECT_EQ(measured_bands(kKnown, 64).slices_from, 16'384u);
  EXPECT_EQ(measured_bands(kKnown, 64).reads_from, 65'536u);
  const std::vector<CollectiveBand> of_four = {{"slices", 4, 9}};
  EXPECT_EQ(measured_bands(of_four, 2).slices_from, 9u);
  EXPECT_EQ(measured_bands({}, 2), MeasuredBands());
}

TEST(MeasuredBands, of_kernels_are_those_of_as_many_members) {
  EXPECT_EQ(measured_bands(kKnown, 2).kernel_lines_to, 262'143u);
  EXPECT_EQ(measured_bands(kKnown, 3).kernel_lines_to, 0u);
  EXPECT_EQ(measured_bands(kKnown, 4).kernel_slices_from, 777u);
}

TEST(MeasuredBands, that_members_tell_each_other_become_the_same_at_all) {
  const MeasuredBands one{.slices_from = 100, .reads_from = 0, .kernel_lines_to = 5, .kernel_slices_from = 0};
  const MeasuredBands another{.slices_from = 50, .reads_from = 70, .kernel_lines_to = 9, .kernel_slices_from = 0};
  EXPECT_EQ(larger(one, another), larger(another, one));
  EXPECT_EQ(larger(one, another).slices_from, 100u);
  EXPECT_EQ(larger(one, another).reads_from, 70u);
  EXPECT_EQ(bands_of(larger(one, another)).slices_from, 100u);
  EXPECT_EQ(bands_of({}).slices_from, Bands().slices_from) << "the built-in one";
  EXPECT_EQ(stream_bands_of(another, 2).lines_to[2], 9u);
  EXPECT_EQ(stream_bands_of(another, 2).slices_from, StreamBands().slices_from);
  EXPECT_EQ(stream_bands_of(another, 1000).lines_to[2], StreamBands().lines_to[2]);
}

TEST(MeasuredBands, stand_in_a_calibration_beside_its_points) {
  const std::string text = "brant-calibration 1\npoint shm host host 8 1\n" + bands_text(kKnown);
  EXPECT_EQ(parse_calibration(text, "name").points(Path::shm, {}).size(), 1u);
  std::string why;
  EXPECT_EQ(parse_band(" slices 4 16384 ", why), kKnown[1]);
  for (const char* wrong : {"", "Slices 2 4", "slices two 4", "slices 0 4", "slices 2", "slices 2 0", "slices 2 4 5"}) {
    why.clear();
    EXPECT_FALSE(parse_band(wrong, why)) << wrong;
    EXPECT_FALSE(why.empty());
    EXPECT_THROW(static_cast<void>(parse_calibration("brant-calibration 1\nband " + std::string(wrong), "name")),
                 Error);
  }
}

}  // namespace
}  // namespace brant::coll
