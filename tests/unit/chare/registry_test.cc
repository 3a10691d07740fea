#include "models/chare/registry.h"

#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace brant::detail {
namespace {

Registered line(RegisteredKind kind, std::string_view owner, std::string_view name, std::string_view detail = "") {
  return {kind, name_hash(owner, name, detail), owner, name, detail};
}

std::string refusal(std::vector<Registered*> lines) {
  try {
    const Registry registry(std::move(lines));
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
}

TEST(Registry, refuses_two_classes_of_one_name) {
  Registered first = line(RegisteredKind::chare_class, "heat::Block", ""), second = first;
  Registered method = line(RegisteredKind::entry, "heat::Block", "halo"), twin = method;
  const std::string text = refusal({&method, &twin, &first, &second});
  EXPECT_NE(text.find("two chare classes have the name heat::Block"), std::string::npos) << text;
}

TEST(Registry, refuses_names_that_collide) {
  Registered first = line(RegisteredKind::entry, "Block", "halo", "void (int)");
  Registered second = line(RegisteredKind::entry, "Block", "norm", "double ()");
  second.hash = first.hash;
  const std::string text = refusal({&first, &second});
  EXPECT_NE(text.find("Block::halo"), std::string::npos) << text;
  EXPECT_NE(text.find("Block::norm"), std::string::npos) << text;
}

TEST(Registry, numbers_depend_on_the_names_and_not_on_the_order) {
  Registered a = line(RegisteredKind::entry, "Block", "halo"), b = line(RegisteredKind::entry, "Block", "norm");
  const Registry one({&a, &b});
  const auto number = a.number;
  const Registry other({&b, &a});
  EXPECT_EQ(a.number, number);
  EXPECT_EQ(one.fingerprint(), other.fingerprint());
  Registered c = line(RegisteredKind::entry, "Block", "norms");
  EXPECT_NE(Registry({&a, &c}).fingerprint(), one.fingerprint());
}

struct Outer {
  template <typename T>
  struct Inner {
    void method(std::vector<T>);
  };
};

TEST(Registry, names_are_those_of_the_source) {
  EXPECT_EQ(type_name<int>(), "int");
  EXPECT_NE(type_name<Outer>().find("Outer"), std::string_view::npos);
  EXPECT_EQ(last_name(value_name<&Outer::Inner<std::vector<int>>::method>()), "method");
}

}  // namespace
}  // namespace brant::detail
