#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "brant/base/status.h"
#include "npy.h"

// The format is a magic, a version, the length of a header, and a header that is a Python dictionary:
//   \x93NUMPY 1 0 <length> {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4, 5), }
namespace jacobi {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
  throw brant::Error(
      brant::Status::invalid_argument,
      fmt::format("{}: {}. Needed is a .npy file with a three-dimensional float64 array, as numpy.save writes it", name,
                  why));
}

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

/// The text after 'key': in the dictionary.
std::string_view value_of(std::string_view dictionary, std::string_view key, std::string_view name) {
  for (const char quote : {'\'', '"'}) {
    const std::size_t at = dictionary.find(fmt::format("{}{}{}", quote, key, quote));
    if (at == std::string_view::npos) continue;
    const std::string_view rest = trimmed(dictionary.substr(at + key.size() + 2));
    if (rest.starts_with(':')) return trimmed(rest.substr(1));
  }
  refuse(name, fmt::format("its header has no '{}'", key));
}

std::string_view dtype_of(std::string_view dictionary, std::string_view name) {
  const std::string_view value = value_of(dictionary, "descr", name);
  const std::size_t end = value.empty() ? std::string_view::npos : value.find(value[0], 1);
  if (end == std::string_view::npos || (value[0] != '\'' && value[0] != '"'))
    refuse(name, "it holds records, not numbers");
  return value.substr(1, end - 1);
}

/// "(3, 4, 5)" as numbers; nothing if it is not three.
std::optional<Extent> shape_from(std::string_view text) {
  Extent shape;
  text = trimmed(text.substr(1, text.size() - 2));
  for (std::int64_t* axis : {&shape.x, &shape.y, &shape.z}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *axis);
    if (error != std::errc{}) return std::nullopt;
    text = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
    if (text.starts_with(',')) text = trimmed(text.substr(1));
  }
  return text.empty() ? std::optional(shape) : std::nullopt;
}

Extent shape_of(std::string_view dictionary, std::string_view name) {
  const std::string_view value = value_of(dictionary, "shape", name);
  const std::size_t end = value.find(')');
  if (!value.starts_with('(') || end == std::string_view::npos) refuse(name, "its header has a broken 'shape'");
  const std::string_view text = value.substr(0, end + 1);
  const std::optional<Extent> shape = shape_from(text);
  if (!shape) refuse(name, fmt::format("its shape is {}, not three-dimensional", text));
  const bool countable = shape->x > 0 && shape->y > 0 && shape->z > 0 && shape->x <= INT64_MAX / 8 / shape->y &&
                         shape->x * shape->y <= INT64_MAX / 8 / shape->z;
  if (!countable) refuse(name, fmt::format("its shape is {}: every axis needs at least one cell", text));
  return *shape;
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> start, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (!text.starts_with(kMagic)) refuse(name, "it is no .npy file (the magic bytes are missing)");
  if (text.size() < 12) refuse(name, "it ends within its header");
  const auto version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3) refuse(name, fmt::format("its format version {} is unknown", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t byte = 0; byte < length_bytes; ++byte) {
    length |= std::size_t{static_cast<unsigned char>(text[8 + byte])} << (8 * byte);
  }
  NpyHeader header;
  header.data_offset = 8 + length_bytes + length;
  if (header.data_offset > text.size()) refuse(name, "it ends within its header");
  const std::string_view dictionary = text.substr(8 + length_bytes, length);
  const std::string_view dtype = dtype_of(dictionary, name);
  if (dtype != "<f8")
    refuse(name, fmt::format("its dtype is '{}', not '<f8' (float64); convert it with array.astype('<f8')", dtype));
  const std::string_view order = value_of(dictionary, "fortran_order", name);
  header.fortran_order = order.starts_with("True");
  if (!header.fortran_order && !order.starts_with("False"))
    refuse(name, "its 'fortran_order' is neither True nor False");
  header.shape = shape_of(dictionary, name);
  return header;
}

std::string make_npy_header(const Extent& shape) {
  std::string dictionary =
      fmt::format("{{'descr': '<f8', 'fortran_order': True, 'shape': ({}, {}, {}), }}", shape.x, shape.y, shape.z);
  const std::size_t before = kMagic.size() + 4;
  const std::size_t whole = (before + dictionary.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  dictionary.append(whole - before - dictionary.size() - 1, ' ');
  dictionary.push_back('\n');
  std::string header(kMagic);
  header.append(
      {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff), static_cast<char>(dictionary.size() >> 8)});
  return header + dictionary;
}

}  // namespace jacobi
