// Types of all constructors, nested by chance, against the standard's type map.
#include "random_types.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "models/mpi/types/elements.h"
#include "models/mpi/types/external.h"
#include "models/mpi/types/pack.h"
#include "models/mpi/types/signature.h"
#include "models/mpi/types/type_shape.h"
#include "support/effort.h"
#include "support/shapes.h"

namespace brant::mpi::test {
namespace {

using Bytes = std::vector<std::byte>;

/// Memory that `count` items of a type lie in.
class Grounds {
 public:
  Grounds(const std::vector<Count>& places, unsigned seed) {
    if (!places.empty()) {
      low_ = *std::min_element(places.begin(), places.end());
      bytes_.resize(static_cast<std::size_t>(*std::max_element(places.begin(), places.end()) - low_ + 1));
    }
    std::minstd_rand random(seed + 1);
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random() >> 8);
  }
  /// The address that the type is laid on.
  [[nodiscard]] void* user() { return reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(bytes_.data()) - low_); }
  [[nodiscard]] std::byte& at(Count place) { return bytes_[static_cast<std::size_t>(place - low_)]; }
  [[nodiscard]] const Bytes& bytes() const { return bytes_; }

 private:
  Count low_ = 0;
  Bytes bytes_;
};

Bytes packed_by_model(Grounds& grounds, const std::vector<Count>& places) {
  Bytes packed;
  for (const Count place : places) packed.push_back(grounds.at(place));
  return packed;
}

void expect_measures(const Twin& twin) {
  EXPECT_EQ(twin.type->size(), twin.model.size());
  EXPECT_EQ(twin.type->lb(), twin.model.lb());
  EXPECT_EQ(twin.type->extent(), twin.model.extent());
  EXPECT_EQ(twin.type->true_lb(), twin.model.true_lb());
  EXPECT_EQ(twin.type->true_extent(), twin.model.true_ub() - twin.model.true_lb());
  const std::vector<Count> two = twin.model.bytes(2);
  std::vector<Count> row(two.size());
  std::iota(row.begin(), row.end(), 0);
  if (twin.type->contiguous()) {
    EXPECT_EQ(two, row);
  }
  if (two == row && twin.type->extent() == twin.type->size() && twin.model.lb() == 0 && twin.model.true_lb() == 0) {
    EXPECT_TRUE(twin.type->contiguous());
  }
}

void expect_packing(const Twin& twin, Count count, RandomTypes& random) {
  const std::vector<Count> places = twin.model.bytes(count);
  Grounds grounds(places, 1);
  const Bytes expected = packed_by_model(grounds, places);
  Bytes packed(expected.size() + 1, std::byte{0x5a});
  pack(grounds.user(), count, *twin.type, 0, packed);
  EXPECT_EQ(packed.back(), std::byte{0x5a}) << "more bytes than there are";
  packed.pop_back();
  EXPECT_EQ(packed, expected);

  // In pieces, which go on where the last one ended.
  Bytes pieces(expected.size());
  Grounds target(places, 2), model(places, 2);
  for (std::size_t at = 0; at < pieces.size();) {
    const std::size_t some = std::min<std::size_t>(static_cast<std::size_t>(random.number(1, 40)), pieces.size() - at);
    pack(grounds.user(), count, *twin.type, static_cast<Count>(at), std::span(pieces).subspan(at, some));
    unpack(std::span(expected).subspan(at, some), static_cast<Count>(at), target.user(), count, *twin.type);
    at += some;
  }
  EXPECT_EQ(pieces, expected);
  for (std::size_t i = 0; i < places.size(); ++i) model.at(places[i]) = expected[i];
  EXPECT_EQ(target.bytes(), model.bytes());
}

void expect_shape(const Twin& twin, Count count, RandomTypes& random) {
  const std::vector<Count> places = twin.model.bytes(count);
  const auto all = static_cast<Count>(places.size());
  const Count begin = random.number(0, all), end = random.number(begin, all);
  for (const auto& [from, to] : {std::pair<Count, Count>{0, all}, {begin, end}}) {
    const std::optional<TypeShape> shape = TypeShape::of(*twin.type, count, from, to);
    ASSERT_TRUE(shape);
    std::vector<Count> bytes;
    for (const std::size_t offset : brant::test::offsets_of(shape->shape())) {
      bytes.push_back(static_cast<Count>(offset) + shape->first());
    }
    EXPECT_EQ(bytes, std::vector<Count>(places.begin() + from, places.begin() + to));
  }
}

void expect_elements(const Twin& twin, RandomTypes& random) {
  // The same elements, made in another way.
  std::vector<Count> lengths, offsets;
  std::vector<Datatype*> types;
  for (const ModelType::Element& element : twin.model.elements) {
    lengths.push_back(1);
    offsets.push_back(element.offset);
    types.push_back(&predefined_type(element.basic));
  }
  const Made row = struct_type(lengths, offsets, types);
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(signature_of(*twin.type, 3), signature_of(*row.type, 3));
  if (!types.empty()) {
    types[static_cast<std::size_t>(random.number(0, static_cast<Count>(types.size()) - 1))] = &predefined_type(0x2da);
    EXPECT_NE(signature_of(*twin.type, 3), signature_of(*struct_type(lengths, offsets, types).type, 3));
  }
  const std::size_t all = twin.model.elements.size();
  const auto some = static_cast<std::size_t>(random.number(0, static_cast<Count>(3 * all)));
  std::vector<Count> ones, places;
  std::vector<Datatype*> first;
  for (std::size_t i = 0; i < some; ++i) {
    ones.push_back(1);
    places.push_back(32 * static_cast<Count>(i));
    first.push_back(&predefined_type(twin.model.elements[i % all].basic));
  }
  EXPECT_EQ(signature_of_first(*twin.type, 3, some), signature_of(*struct_type(ones, places, first).type, 1));
  if (twin.type->size() == 0) return;
  const Count bytes = random.number(0, 3 * twin.type->size());
  Count left = bytes, elements = 0;
  for (Count i = 0; i < 3; ++i) {
    for (const ModelType::Element& element : twin.model.elements) {
      if (left <= 0) break;
      left -= ModelType::bytes_of(element.basic);
      ++elements;
    }
  }
  EXPECT_EQ(elements_in(*twin.type, bytes), left < 0 ? kUndefined : elements);
  EXPECT_EQ(items_in(*twin.type, bytes), bytes % twin.type->size() != 0 ? kUndefined : bytes / twin.type->size());
}

/// Of types without `long double`, whose bytes are not only turned round.
void expect_external(const Twin& twin, Count count) {
  for (const ModelType::Element& element : twin.model.elements) {
    if (element.basic == 0x220) return;
  }
  const std::vector<Count> places = twin.model.bytes(count);
  Grounds grounds(places, 3);
  Bytes expected = packed_by_model(grounds, places);
  auto at = expected.begin();
  for (Count i = 0; i < count; ++i) {
    for (const ModelType::Element& element : twin.model.elements) {
      const auto bytes = static_cast<std::ptrdiff_t>(ModelType::bytes_of(element.basic));
      const std::ptrdiff_t part = element.basic == 0x216 ? bytes / 2 : bytes;
      for (std::ptrdiff_t k = 0; k < bytes; k += part, at += part) std::reverse(at, at + part);
    }
  }
  ASSERT_EQ(external_bytes(*twin.type, count), static_cast<Count>(expected.size()));
  Bytes packed(expected.size());
  EXPECT_TRUE(pack_external(grounds.user(), count, *twin.type, packed));
  EXPECT_EQ(packed, expected);
  Grounds target(places, 4), model(places, 4);
  unpack_external(packed, target.user(), count, *twin.type);
  const Bytes native = packed_by_model(grounds, places);
  for (std::size_t i = 0; i < places.size(); ++i) model.at(places[i]) = native[i];
  EXPECT_EQ(target.bytes(), model.bytes());
}

void expect_rebuilt(const Twin& twin) {
  const Construction& contents = twin.type->construction();
  if (contents.combiner == Combiner::named) {
    EXPECT_EQ(rebuilt_type(contents).fault.error, ErrorClass::type);
    return;
  }
  const Made again = rebuilt_type(contents);
  ASSERT_TRUE(again.ok()) << again.fault.text;
  EXPECT_TRUE(again.type->construction() == contents);
  expect_measures({again.type, twin.model});
  EXPECT_EQ(signature_text(*again.type, 2), signature_text(*twin.type, 2));
}

TEST(RandomTypes, AgreeWithTheTypeMap) {
  const unsigned all = brant::test::effort(6000u, 1200u);
  std::size_t empty = 0, contiguous = 0, strided = 0, listed = 0;
  for (unsigned seed = 0; seed < all && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomTypes random(seed);
    const Twin twin = random.make(static_cast<int>(random.number(1, 4)));
    const Count count = random.number(0, 3);
    expect_measures(twin);
    expect_packing(twin, count, random);
    expect_shape(twin, count, random);
    expect_elements(twin, random);
    expect_external(twin, count);
    expect_rebuilt(twin);
    empty += twin.type->size() == 0 ? 1 : 0;
    contiguous += twin.type->contiguous() ? 1 : 0;
    const Shape::Form form = TypeShape::of(*twin.type, 2)->shape().form();
    strided += form == Shape::Form::strided ? 1 : 0;
    listed += form == Shape::Form::indexed ? 1 : 0;
  }
  // None of the cases stays out by a change of the generator.
  for (const std::size_t some : {empty, contiguous, strided, listed}) EXPECT_GT(some, all / 50);
}

}  // namespace
}  // namespace brant::mpi::test
