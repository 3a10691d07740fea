#include "brant/base/archive.h"

#include <deque>
#include <list>
#include <map>
#include <set>
#include <unordered_map>

#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace brant {
namespace {

struct Particle {
  double mass = 0;
  std::vector<double> track;
  std::string name;
  void serialize(auto& archive) { archive(mass, track, name); }
  bool operator==(const Particle&) const = default;
};

struct Packed {
  explicit Packed(std::size_t bytes) : storage(bytes / 16 + 1) {}
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  std::byte* data() { return storage.data()->bytes; }
  std::vector<Unit> storage;
};

template <typename T>
T round_trip(const T& value) {
  SizeArchive size;
  size(value);
  Packed packed(size.size());
  WriteArchive write(packed.data());
  write(value);
  ReadArchive read(nullptr, packed.data(), size.size());
  T back{};
  read(back);
  return back;
}

template <typename T>
void expect_same(const T& value) {
  EXPECT_EQ(round_trip(value), value);
}

TEST(Archive, values_come_back_as_they_were) {
  expect_same(42);
  expect_same(std::string("a goose"));
  expect_same(std::vector<double>{1, 2, 3});
  expect_same(std::vector<bool>{true, false, true, true});
  expect_same(std::vector<std::string>{"a", "", "ccc"});
  expect_same(std::deque<int>{4, 5});
  expect_same(std::list<std::string>{"x", "y"});
  expect_same(std::map<std::string, std::vector<int>>{{"one", {1}}, {"none", {}}});
  expect_same(std::set<int>{3, 1, 2});
  expect_same(std::unordered_map<int, std::string>{{1, "a"}, {2, "b"}});
  expect_same(std::optional<std::string>("here"));
  expect_same(std::optional<std::string>());
  expect_same(std::variant<int, std::string, double>("text"));
  expect_same(std::tuple<int, std::string, std::pair<double, char>>{1, "two", {3.0, 'c'}});
  expect_same(std::array<std::string, 2>{"left", "right"});
  expect_same(Particle{2.5, {1, 2}, "p"});
  expect_same(std::vector<Particle>{{1, {}, "a"}, {2, {3}, "b"}});
}

TEST(Archive, spans_and_views_are_read_in_place_and_aligned) {
  const std::vector<double> face{1, 2, 3};
  const char letter = 'x';
  SizeArchive size;
  size(letter, std::span<const double>(face), std::string_view("name"));
  Packed packed(size.size());
  WriteArchive write(packed.data());
  write(letter, std::span<const double>(face), std::string_view("name"));
  ReadArchive read(nullptr, packed.data(), size.size());
  char got = 0;
  std::span<const double> span;
  std::string_view view;
  read(got, span, view);
  EXPECT_EQ(std::vector<double>(span.begin(), span.end()), face);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(span.data()) % alignof(double), 0u);
  EXPECT_GE(reinterpret_cast<const std::byte*>(span.data()), packed.data());
  EXPECT_EQ(view, "name");
}

TEST(Archive, a_message_that_ends_too_early_is_an_error_and_not_a_read_past_it) {
  std::uint64_t count = std::uint64_t{1} << 62;
  Packed packed(16);
  std::memcpy(packed.data(), &count, sizeof(count));
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{4}, std::size_t{8}, std::size_t{16}}) {
    ReadArchive read(nullptr, packed.data(), bytes);
    std::vector<double> values;
    EXPECT_THROW(read(values), Error) << bytes;
    ReadArchive again(nullptr, packed.data(), bytes);
    std::string text;
    EXPECT_THROW(again(text), Error) << bytes;
  }
}

TEST(Archive, a_variant_of_unknown_alternative_is_an_error) {
  Packed packed(16);
  packed.data()[0] = std::byte{7};
  ReadArchive read(nullptr, packed.data(), 16);
  std::variant<int, double> value;
  EXPECT_THROW(read(value), Error);
}

}  // namespace
}  // namespace brant
