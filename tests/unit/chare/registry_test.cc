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

LateName late_name(std::string_view name, std::uint64_t hash) {
  return {RegisteredKind::entry, hash, std::string(name)};
}

TEST(Registry, gives_late_names_the_places_behind_the_program_and_the_same_name_the_same) {
  Registered a = line(RegisteredKind::entry, "Block", "halo"), b = line(RegisteredKind::entry, "Block", "norm");
  Registry registry({&a, &b});
  EXPECT_EQ(registry.give_number(late_name("late", 7)), 2);
  EXPECT_EQ(registry.give_number(late_name("later", 8)), 3);
  EXPECT_EQ(registry.give_number(late_name("late", 7)), 2);
  EXPECT_EQ(registry.give_number({RegisteredKind::entry, a.hash, "Block::halo ()"}), a.number) << "it is the program's";
  EXPECT_EQ(registry.size(), 2u) << "the program is what is compared";
  EXPECT_THROW(registry.give_number(late_name("of the same hash", 7)), Error);
  EXPECT_THROW(registry.give_number({RegisteredKind::absent, 9, "of no kind"}), Error);
}

TEST(Registry, awaits_numbers_behind_the_program_that_nothing_has_here) {
  Registered a = line(RegisteredKind::entry, "Block", "halo");
  const Registry registry({&a});
  EXPECT_FALSE(registry.is_awaited(a.number));
  EXPECT_TRUE(registry.is_awaited(1));
  EXPECT_FALSE(registry.is_awaited(kNoNumber));
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
