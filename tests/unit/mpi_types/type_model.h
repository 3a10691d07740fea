#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "models/mpi/types/datatype.h"

/// Datatypes in the plainest words: the standard's type map, element by element.
namespace brant::mpi::test {

struct ModelType {
  struct Element {
    Count offset;
    std::uint16_t basic;  ///< Number of the handle.
  };
  std::vector<Element> elements;
  std::vector<Count> low_marks;
  std::vector<Count> high_marks;
  Count alignment = 1;

  static Count bytes_of(std::uint16_t number) {
    return basic_type(static_cast<std::uint16_t>(number - kFirstType)).bytes;
  }

  static ModelType named(std::uint16_t number) {
    const BasicType& basic = basic_type(static_cast<std::uint16_t>(number - kFirstType));
    ModelType type;
    type.alignment = basic.alignment;
    if (basic.representation != Representation::pair) {
      type.elements = {{0, number}};
      return type;
    }
    const BasicType& place = basic_type(static_cast<std::uint16_t>(basic.place - kFirstType));
    Count behind = bytes_of(basic.value);
    while (behind % place.alignment != 0) ++behind;
    type.elements = {{0, basic.value}, {behind, basic.place}};
    return type;
  }

  [[nodiscard]] Count size() const {
    Count all = 0;
    for (const Element& element : elements) all += bytes_of(element.basic);
    return all;
  }
  [[nodiscard]] Count true_lb() const {
    Count low = elements.empty() ? 0 : elements[0].offset;
    for (const Element& element : elements) low = std::min(low, element.offset);
    return low;
  }
  [[nodiscard]] Count true_ub() const {
    Count high = elements.empty() ? 0 : elements[0].offset;
    for (const Element& element : elements) high = std::max(high, element.offset + bytes_of(element.basic));
    return high;
  }
  [[nodiscard]] Count lb() const {
    return low_marks.empty() ? true_lb() : *std::min_element(low_marks.begin(), low_marks.end());
  }
  [[nodiscard]] Count extent() const {
    if (!high_marks.empty()) return *std::max_element(high_marks.begin(), high_marks.end()) - lb();
    Count extent = true_ub() - lb();
    while (extent % alignment != 0) ++extent;
    return extent;
  }

  /// `length` items of `type`, from `displacement` on, behind what is there.
  void add(const ModelType& type, Count length, Count displacement) {
    const Count extent = type.extent();
    for (Count i = 0; i < length; ++i) {
      const Count at = displacement + i * extent;
      for (const Element& element : type.elements) elements.push_back({element.offset + at, element.basic});
      for (const Count mark : type.low_marks) low_marks.push_back(mark + at);
      for (const Count mark : type.high_marks) high_marks.push_back(mark + at);
    }
    if (length != 0 && !type.elements.empty()) alignment = std::max(alignment, type.alignment);
  }
  void mark(Count low, Count high) {
    low_marks = {low};
    high_marks = {high};
  }

  /// Where each byte of `count` items lies, in their order.
  [[nodiscard]] std::vector<Count> bytes(Count count) const {
    std::vector<Count> places;
    for (Count i = 0; i < count; ++i) {
      for (const Element& element : elements) {
        for (Count byte = 0; byte < bytes_of(element.basic); ++byte) {
          places.push_back(i * extent() + element.offset + byte);
        }
      }
    }
    return places;
  }
};

/// A part of an array, element by element: `places` holds the indices that belong to it in each dimension.
inline ModelType model_of_part(const ModelType& old, std::span<const Count> sizes,
                               const std::vector<std::vector<Count>>& places, bool fortran) {
  std::vector<std::size_t> order(sizes.size());  // innermost first
  for (std::size_t i = 0; i < sizes.size(); ++i) order[i] = fortran ? i : sizes.size() - 1 - i;
  std::vector<Count> offsets = {0};
  Count stride = 1;
  for (const std::size_t dimension : order) {
    std::vector<Count> wider;
    for (const Count place : places[dimension]) {
      for (const Count offset : offsets) wider.push_back(offset + place * stride);
    }
    offsets = wider;
    stride *= sizes[dimension];
  }
  ModelType type;
  for (const Count offset : offsets) type.add(old, 1, offset * old.extent());
  type.mark(0, stride * old.extent());
  return type;
}

}  // namespace brant::mpi::test
