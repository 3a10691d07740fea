#include "bindings/python/typed_call.h"

#include <nanobind/stl/string.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "bindings/python/calling.h"
#include "bindings/python/make.h"
#include "bindings/python/member.h"
#include "bindings/python/signature.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

[[noreturn]] void raise_type_error(const std::string& text) {
  PyErr_SetString(PyExc_TypeError, text.c_str());
  throw nb::python_error();
}

/// As the compiler aligns it; complex numbers as their parts.
std::size_t align_of_letter(char letter) noexcept {
  return letter == 'F' ? 4 : letter == 'D' ? 8 : bytes_of_letter(letter);
}

bool is_truth(nb::handle object) noexcept {
  const std::string_view name = Py_TYPE(object.ptr())->tp_name;
  return PyBool_Check(object.ptr()) || name == "numpy.bool_" || name == "numpy.bool";
}

template <typename T>
bool put_integer(PyObject* number, std::byte* to) noexcept {
  T value;
  if constexpr (std::is_signed_v<T>) {
    int overflow = 0;
    const long long wide = PyLong_AsLongLongAndOverflow(number, &overflow);
    value = static_cast<T>(wide);
    if (overflow != 0 || value != wide) return false;
  } else {
    const unsigned long long wide = PyLong_AsUnsignedLongLong(number);
    if (wide == std::numeric_limits<unsigned long long>::max() && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
    value = static_cast<T>(wide);
    if (value != wide) return false;
  }
  std::memcpy(to, &value, sizeof value);
  return true;
}

bool put_integer(char letter, PyObject* number, std::byte* to) noexcept {
  switch (letter) {
    case 'b': return put_integer<std::int8_t>(number, to);
    case 'h': return put_integer<std::int16_t>(number, to);
    case 'i': return put_integer<std::int32_t>(number, to);
    case 'q': return put_integer<std::int64_t>(number, to);
    case 'B': return put_integer<std::uint8_t>(number, to);
    case 'H': return put_integer<std::uint16_t>(number, to);
    case 'I': return put_integer<std::uint32_t>(number, to);
    default: return put_integer<std::uint64_t>(number, to);
  }
}

bool put_real(char letter, double value, std::byte* to) noexcept {
  if (letter == 'd') {
    std::memcpy(to, &value, sizeof value);
    return true;
  }
  const auto narrow = static_cast<float>(value);
  std::memcpy(to, &narrow, sizeof narrow);
  return std::isfinite(narrow) || !std::isfinite(value);
}

/// Clears what an argument of the wrong type raises; what the program raises in its own __float__ goes on.
void clear_misfit() {
  if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_OverflowError))
    throw nb::python_error();
  PyErr_Clear();
}

/// A tuple of its items, or null: it has none that stand in an order. Of a list, which may change meanwhile: making
/// numbers of its items runs code of the program.
nb::object items_of(nb::handle object) {
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()) || PyDict_Check(object.ptr())) return {};
  if (PySequence_Check(object.ptr()) == 0 && PyAnySet_Check(object.ptr()) == 0) return {};
  nb::object items = nb::steal(PySequence_Tuple(object.ptr()));
  if (!items.is_valid()) clear_misfit();
  return items;
}

}  // namespace

void TypedCall::refuse(const Value& value, std::string_view why) const {
  std::string is = Py_TYPE(value.object.ptr())->tp_name;
  if (!why.empty()) is = why;
  raise_type_error(who_ + ": " + value.what + " must be " + type_text(value.type) + ", not " + is);
}

void TypedCall::add_arguments(std::string_view signature, nb::handle args) {
  const auto given = static_cast<std::size_t>(PyTuple_GET_SIZE(args.ptr()));
  std::size_t wanted = 0;
  for (std::string_view rest = signature; !rest.empty(); ++wanted) static_cast<void>(next_type(rest));
  if (given != wanted)
    raise_type_error(who_ + " takes " + std::to_string(wanted) + " arguments " + types_text(signature) + ", not " +
                     std::to_string(given));
  for (std::size_t at = 0; at < given; ++at)
    add(next_type(signature), PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(at)),
        "argument " + std::to_string(at + 1));
}

void TypedCall::add(std::string_view type, nb::handle object, const std::string& what) {
  const Value value{type, object, what};
  switch (type.front()) {
    case 's': return add_text(value);
    case 'y': return add_byte_string(value);
    case '[': return add_run(value);
    case 'l':
    case '{': return add_each(value);
    case 'm': return add_map(value);
    case '#':
    case '(': return add_parts(value);
    case 'x':
    case 'X': return add_data(value);
    case 'P':
    case 'p':
    case 'A':
    case 'E': return add_proxy(value);
    case 'o':
      add_plain(static_cast<std::uint8_t>(object.is_none() ? 0 : 1));
      if (!object.is_none()) add(type.substr(1), object, what);
      return;
    default: return add_number(value);
  }
}

template <typename T>
void TypedCall::add_plain(const T& value) {
  static_assert(sizeof value <= sizeof(Piece::own));
  Piece& piece = pieces_.emplace_back();
  std::memcpy(piece.own.data(), &value, sizeof value);
  piece.count = sizeof value;
}

void TypedCall::add_bytes(const void* bytes, std::size_t count, std::size_t align) {
  Piece& piece = pieces_.emplace_back();
  piece.bytes = bytes;
  piece.count = count;
  piece.align = align;
}

std::byte* TypedCall::make(std::size_t count) {
  return made_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(count == 0 ? 1 : count)).get();
}

void TypedCall::write_number(const Value& value, char letter, std::byte* to) const {
  PyObject* const object = value.object.ptr();
  if (letter == '?') {
    if (!is_truth(value.object)) refuse(value);
    const bool truth = PyObject_IsTrue(object) == 1;
    std::memcpy(to, &truth, 1);
    return;
  }
  if (is_sent_raw(object) || PyNumber_Check(object) == 0) refuse(value);  // arrays of one element are numbers, too
  if (letter == 'F' || letter == 'D') {
    const Py_complex number = PyComplex_AsCComplex(object);
    if (PyErr_Occurred() != nullptr) {
      clear_misfit();
      refuse(value);
    }
    const char part = letter == 'D' ? 'd' : 'f';
    const bool fits = put_real(part, number.real, to) && put_real(part, number.imag, to + bytes_of_letter(part));
    if (!fits) refuse(value, "a number that does not fit");
  } else if (letter == 'f' || letter == 'd') {
    const double number = PyFloat_AsDouble(object);
    if (number == -1.0 && PyErr_Occurred() != nullptr) {
      clear_misfit();
      refuse(value);
    }
    if (!put_real(letter, number, to)) refuse(value, "a number that does not fit");
  } else {
    const nb::object number = nb::steal(PyNumber_Index(object));
    if (!number.is_valid()) {
      clear_misfit();
      refuse(value);
    }
    if (!put_integer(letter, number.ptr(), to)) refuse(value, nb::cast<std::string>(nb::str(number)));
  }
}

void TypedCall::add_number(const Value& value) {
  Piece& piece = pieces_.emplace_back();
  piece.count = bytes_of_letter(value.type.front());
  write_number(value, value.type.front(), piece.own.data());
}

void TypedCall::add_text(const Value& value) {
  if (PyUnicode_Check(value.object.ptr()) == 0) refuse(value);
  Py_ssize_t count = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.object.ptr(), &count);
  if (text == nullptr) throw nb::python_error();
  kept_.push_back(nb::borrow(value.object));
  add_plain(static_cast<std::uint64_t>(count));
  add_bytes(text, static_cast<std::size_t>(count));
}

void TypedCall::add_byte_string(const Value& value) {
  View& view = views_.emplace_back();
  const bool taken = PyObject_CheckBuffer(value.object.ptr()) != 0 && view.take(value.object.ptr(), View::Access::read);
  if (!taken) refuse(value);
  if (!view.is_host() || view.order() != Order::c) refuse(value, view.describe());
  add_plain(static_cast<std::uint64_t>(view.bytes()));
  add_bytes(view.memory().data, view.bytes());
}

void TypedCall::add_run(const Value& value) {
  if (is_sent_raw(value.object.ptr())) return add_run_of_array(value);
  const nb::object items = items_of(value.object);
  if (!items.is_valid()) refuse(value);
  const std::string_view item = value.type.substr(1);
  const RunItem run = run_item(item);
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(items.ptr()));
  const std::size_t bytes = count * run.each * bytes_of_letter(run.letter);
  std::byte* const memory = make(bytes);
  std::byte* to = memory;
  for (std::size_t at = 0; at < count; ++at) {
    PyObject* object = PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(at));
    to = write_run({item, object, value.what + "[" + std::to_string(at) + "]"}, item, to);
  }
  add_plain(static_cast<std::uint64_t>(count));
  add_bytes(memory, bytes, align_of_letter(run.letter));
}

/// One element of a run, which may be several numbers. Returns where it ends.
std::byte* TypedCall::write_run(const Value& value, std::string_view item, std::byte* to) const {
  if (item.front() != '#') {
    write_number(value, item.front(), to);
    return to + bytes_of_letter(item.front());
  }
  const FixedCount fixed = fixed_count(item);
  const nb::object items = items_of(value.object);
  if (!items.is_valid()) refuse(value);
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(items.ptr()));
  if (count != fixed.count) refuse(value, std::to_string(count));
  for (std::size_t at = 0; at < count; ++at)
    to =
        write_run({fixed.item, PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(at)), value.what}, fixed.item, to);
  return to;
}

void TypedCall::add_run_of_array(const Value& value) {
  View& view = views_.emplace_back();
  if (!view.take(value.object.ptr(), View::Access::read)) refuse(value);
  const std::string_view item = value.type.substr(1);
  const RunItem run = run_item(item);
  bool fits = view.is_host() && view.format() == format_of_letter(run.letter) && view.shape().size() == 1 + run.dims;
  std::string_view rest = item;
  for (std::size_t dim = 1; fits && dim <= run.dims; ++dim) {
    const FixedCount fixed = fixed_count(rest);
    fits = view.shape()[dim] == static_cast<Py_ssize_t>(fixed.count);
    rest = fixed.item;
  }
  if (!fits) refuse(value, view.describe() + (view.is_host() ? "" : " in memory of a device"));
  const void* bytes = view.memory().data;
  if (view.order() != Order::c) {
    std::byte* const packed = make(view.bytes());
    view.pack(packed);
    bytes = packed;
  }
  add_plain(static_cast<std::uint64_t>(view.shape()[0]));
  add_bytes(bytes, view.bytes(), align_of_letter(run.letter));
}

void TypedCall::add_each(const Value& value) {
  const nb::object items = items_of(value.object);
  if (!items.is_valid()) refuse(value);
  const Py_ssize_t count = PyTuple_GET_SIZE(items.ptr());
  add_plain(static_cast<std::uint64_t>(count));
  kept_.push_back(items);
  for (Py_ssize_t at = 0; at < count; ++at)
    add(value.type.substr(1), PyTuple_GET_ITEM(items.ptr(), at), value.what + "[" + std::to_string(at) + "]");
}

void TypedCall::add_map(const Value& value) {
  if (PyDict_Check(value.object.ptr()) == 0) refuse(value);
  std::string_view types = value.type.substr(1);
  const std::string_view key_type = next_type(types);
  const nb::object items = nb::steal(PyDict_Items(value.object.ptr()));
  add_plain(static_cast<std::uint64_t>(PyList_GET_SIZE(items.ptr())));
  kept_.push_back(items);
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(items.ptr()); ++at) {
    PyObject* pair = PyList_GET_ITEM(items.ptr(), at);
    add(key_type, PyTuple_GET_ITEM(pair, 0), "a key of " + value.what);
    add(types, PyTuple_GET_ITEM(pair, 1), "a value of " + value.what);
  }
}

/// As many as the type says, without a count: of a tuple, or of an array of fixed length.
void TypedCall::add_parts(const Value& value) {
  const nb::object items = items_of(value.object);
  if (!items.is_valid()) refuse(value);
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(items.ptr()));
  const bool tuple = value.type.front() == '(';
  std::string_view types = tuple ? value.type.substr(1, value.type.size() - 2) : std::string_view();
  const FixedCount fixed = tuple ? FixedCount{} : fixed_count(value.type);
  std::size_t wanted = fixed.count;
  if (tuple) {
    for (std::string_view rest = types; !rest.empty(); ++wanted) static_cast<void>(next_type(rest));
  }
  if (count != wanted) refuse(value, std::to_string(count) + " values");
  kept_.push_back(items);
  for (std::size_t at = 0; at < count; ++at)
    add(tuple ? next_type(types) : fixed.item, PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(at)),
        value.what + "[" + std::to_string(at) + "]");
}

void TypedCall::add_data(const Value& value) {
  if (!is_sent_raw(value.object.ptr())) refuse(value);
  Data& data = data_.emplace_back();
  data.host_only = value.type.front() == 'X';
  View& view = data.view;
  if (!view.take(value.object.ptr(), View::Access::read)) refuse(value);
  if (view.order() == Order::strided) refuse(value, view.describe() + " whose elements do not lie together");
  if (value.type.front() == 'x') return;
  if (!view.is_host() || view.format() != format_of_letter(value.type[1])) refuse(value, view.describe());
}

void TypedCall::add_proxy(const Value& value) {
  static const nb::handle parts_of = python_function("brant._cpp", "parts_of");
  const char letter = value.type.front();
  const std::string_view name = value.type.substr(1, value.type.size() < 2 ? 0 : value.type.size() - 2);
  const nb::object found = nb::object(parts_of(value.object, std::string(1, letter), std::string(name)));
  if (found.is_none()) refuse(value);
  const auto parts = nb::cast<nb::tuple>(found);  // the address, the extent of the array, the name of the class
  const Address& address = *nb::inst_ptr<Address>(parts[0]);
  static_cast<void>(core_of(address));  // C++ could not tell one of an earlier program
  const detail::CallbackTarget& target = address.target;
  const auto shape = nb::cast<nb::tuple>(parts[1]);
  const auto dimensions = static_cast<int>(shape.size());
  add_plain(target.collection);
  const auto add_key = [this](const detail::ElementKey& key) {
    std::byte* const bytes = make(sizeof key);
    std::memcpy(bytes, &key, sizeof key);
    add_bytes(bytes, sizeof key);
  };
  if (letter == 'E') return add_key(target.key);
  if (letter == 'A') {
    add_plain(true);
    return add_key(key_of(shape, dimensions));
  }
  add_plain(static_cast<std::int32_t>(dimensions));
  add_key(key_of(shape, dimensions));
  add_key(letter == 'p' ? target.key : detail::ElementKey{});
  const nb::object class_name = nb::object(parts[2]);
  add_text({"s", class_name, value.what});
}

std::size_t TypedCall::bytes_behind(std::size_t before) const noexcept {
  SizeArchive size;
  size.bytes(nullptr, before);
  for (const Piece& piece : pieces_) {
    size.align(piece.align);
    size.bytes(nullptr, piece.count);
  }
  return size.size();
}

void TypedCall::write_behind(std::size_t before, std::byte* message) const noexcept {
  std::size_t at = before;
  for (const Piece& piece : pieces_) {
    for (; at % piece.align != 0; ++at) message[at] = std::byte{0};
    if (piece.count != 0)
      std::memcpy(message + at, piece.bytes != nullptr ? piece.bytes : piece.own.data(), piece.count);
    at += piece.count;
  }
}

}  // namespace brant::python
