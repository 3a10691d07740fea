#include "base/variables.h"

#include <gtest/gtest.h>

namespace brant {
namespace {

TEST(Variables, have_unique_names_and_near_ones_are_found) {
  EXPECT_EQ(nearest_variable("BRANT_UCXX"), "BRANT_UCX");
  EXPECT_EQ(nearest_variable("BRANT_SOMETHING_ELSE"), "");
  for (const std::string_view name : known_variables()) EXPECT_EQ(nearest_variable(name), name);
}

TEST(Variables, that_nobody_reads_are_known_but_for_those_of_tests) {
  EXPECT_TRUE(is_unread_variable("BRANT_PTH"));
  EXPECT_FALSE(is_unread_variable("BRANT_PATH"));
  EXPECT_FALSE(is_unread_variable("BRANT_TEST_SCENE"));
  EXPECT_FALSE(is_unread_variable("PATH"));
}

}  // namespace
}  // namespace brant
