// Calibrations that were cut, edited or damaged: read, or refused with the file and the line.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "core/paths/calibration_text.h"
#include "core/paths/path_order.h"
#include "support/mutation.h"

namespace brant {
namespace {

constexpr std::string_view kWhole = R"(brant-calibration 1
brant 0.1.0
ucx 1.22.0
cuda CUDA 13.0 (driver 580.159)
host node7
gpu GPU-0e6c1d5a-7b0f-9d2c
# path, from, to, bytes, microseconds one way
point shm host host 8 0.21
point shm host host 65536 9.75
point shm mapped host 8192 0.5
point ucx host host 8 0.9
point ucx host host 1048576 95.1
point copy_engine device device 65536 8.85
point courier device device 8 2.5
point staged device host 4096 14.25
)";

/// Damage as editors, disks and copies do it.
std::string damaged(test::Mutation& mutation) {
  std::string text(kWhole);
  mutation.spoil(std::as_writable_bytes(std::span(text)));
  switch (mutation.below(5)) {
    case 0: text.resize(mutation.below(text.size())); break;
    case 1: text.insert(mutation.below(text.size()), std::to_string(mutation.odd_number())); break;
    case 2:
      text.insert(mutation.below(text.size()), text.substr(mutation.below(text.size()), mutation.below(80)));
      break;
    case 3: text.insert(mutation.below(text.size()), mutation.below(2) == 0 ? "-" : "e308 nan "); break;
    default: break;
  }
  return text;
}

TEST(CalibrationFuzz, a_damaged_calibration_is_read_or_refused_with_its_name) {
  test::Mutation mutation(1400);
  const unsigned texts = 7 * test::fuzz_records(4'000);
  ASSERT_GE(texts, 1400u);
  unsigned refused = 0;
  for (unsigned i = 0; i < texts; ++i) {
    const std::string text = damaged(mutation);
    try {
      const PathOrder order(parse_calibration(text, "the file"));
      static_cast<void>(order.at(EndPair{false, false}, mutation.below(1 << 20)));  // whatever was read can be used
    } catch (const Error& error) {
      ASSERT_NE(std::string(error.what()).find("the file"), std::string::npos) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, texts / 8);
  EXPECT_LT(refused, texts);
}

}  // namespace
}  // namespace brant
