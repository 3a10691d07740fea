#include "bindings/python/typed_read.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bindings/python/array.h"
#include "bindings/python/calling.h"
#include "bindings/python/make.h"
#include "bindings/python/member.h"
#include "bindings/python/signature.h"
#include "bindings/python/view.h"
#include "brant/chare.h"
#include "brant/chare/expose.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

template <typename T>
T read(ReadArchive& archive) {
  T value;
  archive(value);
  return value;
}

template <typename T>
nb::object integer(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::is_signed_v<T>) {
    return nb::steal(PyLong_FromLongLong(value));
  } else {
    return nb::steal(PyLong_FromUnsignedLongLong(value));
  }
}

double real(char letter, const std::byte* from) noexcept {
  if (letter == 'd') {
    double value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  float value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

nb::object number(char letter, const std::byte* from) {
  switch (letter) {
    case '?': return nb::bool_(*from != std::byte{0});
    case 'b': return integer<std::int8_t>(from);
    case 'h': return integer<std::int16_t>(from);
    case 'i': return integer<std::int32_t>(from);
    case 'q': return integer<std::int64_t>(from);
    case 'B': return integer<std::uint8_t>(from);
    case 'H': return integer<std::uint16_t>(from);
    case 'I': return integer<std::uint32_t>(from);
    case 'Q': return integer<std::uint64_t>(from);
    case 'F': return nb::steal(PyComplex_FromDoubles(real('f', from), real('f', from + 4)));
    case 'D': return nb::steal(PyComplex_FromDoubles(real('d', from), real('d', from + 8)));
    default: return nb::float_(real(letter, from));
  }
}

/// An array of its own: what C++ wrote goes with the message.
nb::object array_of(const std::vector<Py_ssize_t>& shape, char letter, const void* bytes, std::size_t count) {
  static const nb::handle empty_like = python_function("brant._arrays", "empty_like");
  nb::object array =
      nb::object(empty_like(std::string(format_of_letter(letter)), shape_tuple(shape), false, bytes_of_letter(letter)));
  View view;
  if (!view.take(array.ptr(), View::Access::write)) throw Error(Status::internal, "a new array cannot be written");
  if (count != 0) std::memcpy(view.memory().data, bytes, count);
  return array;
}

nb::object read_run(ReadArchive& archive, std::string_view item) {
  const auto count = read<std::uint64_t>(archive);
  const RunItem run = run_item(item);
  const std::size_t bytes = run.each * bytes_of_letter(run.letter);
  archive.align(std::min<std::size_t>(8, run.letter == 'F' ? 4 : bytes_of_letter(run.letter)));
  std::vector<Py_ssize_t> shape{static_cast<Py_ssize_t>(count)};
  for (; item.front() == '#'; item = fixed_count(item).item)
    shape.push_back(static_cast<Py_ssize_t>(fixed_count(item).count));
  if (bytes == 0) throw Error(Status::invalid_argument, "a message contradicts itself");
  return array_of(shape, run.letter, archive.take_items(count, bytes), static_cast<std::size_t>(count) * bytes);
}

/// How many follow: each takes a byte at least, or a crafted count would keep the process busy for ever.
std::uint64_t read_count(ReadArchive& archive) {
  const auto count = read<std::uint64_t>(archive);
  ReadArchive behind = archive;
  static_cast<void>(behind.take_items(count, 1));
  return count;
}

nb::object read_each(ReadArchive& archive, std::string_view item, const LandTyped& land) {
  nb::list list;
  const std::uint64_t count = read_count(archive);
  for (std::uint64_t at = 0; at < count; ++at) list.append(read_typed(archive, item, land));
  return list;
}

nb::object read_map(ReadArchive& archive, std::string_view types) {
  const std::string_view key_type = next_type(types);
  nb::dict map;
  const std::uint64_t count = read_count(archive);
  for (std::uint64_t at = 0; at < count; ++at) {
    const nb::object key = read_typed(archive, key_type);
    map[key] = read_typed(archive, types);
  }
  return map;
}

nb::object read_fixed(ReadArchive& archive, std::string_view type) {
  const FixedCount fixed = fixed_count(type);
  if (is_number(fixed.item.front())) {
    const std::size_t bytes = fixed.count * bytes_of_letter(fixed.item.front());
    return array_of({static_cast<Py_ssize_t>(fixed.count)}, fixed.item.front(), archive.take(bytes), bytes);
  }
  ReadArchive behind = archive;
  static_cast<void>(behind.take(fixed.count));  // a byte each, at least
  nb::list list;
  for (std::size_t at = 0; at < fixed.count; ++at) list.append(read_typed(archive, fixed.item));
  return list;
}

nb::object read_set(ReadArchive& archive, std::string_view item, const LandTyped& land) {
  nb::object set = nb::steal(PySet_New(read_each(archive, item, land).ptr()));
  if (!set.is_valid()) throw nb::python_error();  // of lists, say, which Python has in no set
  return set;
}

nb::object read_text(ReadArchive& archive) {
  const auto text = read<std::string_view>(archive);
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

nb::object read_bytes(ReadArchive& archive) {
  const auto count = read<std::uint64_t>(archive);
  return nb::bytes(archive.take_items(count, 1), static_cast<std::size_t>(count));
}

nb::object read_proxy(ReadArchive& archive, char letter, std::string_view type_name) {
  static const nb::handle proxy_of = python_function("brant._cpp", "proxy_of");
  Address address;
  const bool array = letter == 'A' || letter == 'P';
  address.target.kind = array ? detail::CallbackKind::array : detail::CallbackKind::element;
  address.target.collection = read<std::uint32_t>(archive);
  std::string class_name(type_name);
  int dimensions = 0;
  detail::ElementKey extent, key;
  if (letter == 'E') {
    archive(key);
  } else if (letter == 'A') {
    if (!read<bool>(archive)) throw Error(Status::not_supported, "a sparse array of C++ is nothing that Python knows");
    archive(extent);
  } else {
    dimensions = read<std::int32_t>(archive);
    archive(extent, key, class_name);
  }
  if (letter == 'E' || letter == 'A') {
    const detail::ExposedClass* known = detail::find_exposed_type(type_name);
    if (known == nullptr)
      throw Error(Status::not_found,
                  "a proxy of the class " + class_name + " came, which is not exposed to Python here");
    dimensions = known->info->dimensions;
    class_name = known->name;
  }
  if (dimensions < 1 || dimensions > 6) throw Error(Status::invalid_argument, "a message contradicts itself");
  if (!array) address.target.key = key;
  return nb::object(proxy_of(std::string(1, letter), class_name, address, index_of(array ? extent : key, dimensions)));
}

}  // namespace

nb::object read_typed(ReadArchive& archive, std::string_view type, const LandTyped& land) {
  const std::string_view inner = type.substr(1);
  switch (type.front()) {
    case 's': return read_text(archive);
    case 'y': return read_bytes(archive);
    case '[': return read_run(archive, inner);
    case 'l': return read_each(archive, inner, land);
    case '{': return read_set(archive, inner, land);
    case 'm': return read_map(archive, inner);
    case '#': return read_fixed(archive, type);
    case '(': return read_typed_all(archive, inner.substr(0, inner.size() - 1), land);
    case 'o': return read<std::uint8_t>(archive) != 0 ? read_typed(archive, inner, land) : nb::object(nb::none());
    case 'x':
    case 'X':
      if (!land) throw Error(Status::invalid_argument, "a message contradicts itself");
      return land(type);
    case 'P':
    case 'p': return read_proxy(archive, type.front(), {});
    case 'A':
    case 'E': return read_proxy(archive, type.front(), inner.substr(0, inner.size() - 1));
    default: return number(type.front(), static_cast<const std::byte*>(archive.take(bytes_of_letter(type.front()))));
  }
}

nb::tuple read_typed_all(ReadArchive& archive, std::string_view signature, const LandTyped& land) {
  nb::list values;
  while (!signature.empty()) values.append(read_typed(archive, next_type(signature), land));
  return nb::tuple(values);
}

}  // namespace brant::python
