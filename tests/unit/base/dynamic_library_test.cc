#include "base/dynamic_library.h"

#include <gtest/gtest.h>

namespace brant {
namespace {

constexpr const char* kNowhere = "libbrant-no-such-library.so";

TEST(DynamicLibrary, gives_its_functions_and_says_where_they_are) {
  const DynamicLibrary math("libm.so.6");
  ASSERT_TRUE(math) << math.why_not();
  EXPECT_EQ(math.why_not(), "");
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(math.find(cosine, "cos"));
  EXPECT_EQ(cosine(0.0), 1.0);
  EXPECT_NE(DynamicLibrary::file_of(reinterpret_cast<const void*>(cosine)).find("libm"), std::string::npos);
}

TEST(DynamicLibrary, that_is_missing_says_why_and_has_no_function) {
  const DynamicLibrary none(kNowhere);
  EXPECT_FALSE(none);
  EXPECT_NE(none.why_not().find(kNowhere), std::string::npos) << none.why_not();
  void (*function)() = +[] {};
  EXPECT_FALSE(none.find(function, "cos"));
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(DynamicLibrary::file_of(nullptr), "");
}

TEST(DynamicLibrary, is_not_loaded_where_only_what_is_mapped_was_asked_for) {
  EXPECT_TRUE(DynamicLibrary("libc.so.6", DynamicLibrary::Open::if_mapped));
  const DynamicLibrary other("libutil-that-nobody-loaded.so.1", DynamicLibrary::Open::if_mapped);
  EXPECT_FALSE(other);
  EXPECT_NE(other.why_not(), "");
}

TEST(FunctionFinder, names_the_first_function_that_is_missing) {
  const DynamicLibrary math("libm.so.6");
  FunctionFinder functions(math);
  double (*cosine)(double) = nullptr;
  double (*other)(double) = nullptr;
  functions.need(cosine, "cos");
  EXPECT_EQ(functions.missing(), nullptr);
  functions.need(other, "brant_first");
  functions.need(other, "brant_second");
  EXPECT_STREQ(functions.missing(), "brant_first");
}

struct Fake {
  int calls = 0;
};
int loads = 0;

TEST(LoadedOnce, remembers_a_failure_too) {
  static const LoadedOnce<Fake> failed(+[]() -> Fake {
    ++loads;
    throw Error(Status::not_found, "no such library");
  });
  for (int i = 0; i < 2; ++i) {
    try {
      static_cast<void>(failed.get());
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::not_found);
      EXPECT_STREQ(error.what(), "no such library");
    }
  }
  EXPECT_EQ(loads, 1);
  static const LoadedOnce<Fake> loaded(+[] { return Fake{7}; });
  EXPECT_EQ(loaded.get().calls, 7);
}

}  // namespace
}  // namespace brant
