#include "bindings/python/signature.h"

#include <array>
#include <charconv>

#include "brant/brant.h"

namespace brant::python {
namespace {

constexpr int kDepthMax = 64;

struct Number {
  char letter;
  std::size_t bytes;
  std::string_view format;
  std::string_view text;
};
constexpr std::array kNumbers = {
    Number{'?', 1, "?", "bool"},         Number{'b', 1, "b", "int8"},    Number{'h', 2, "h", "int16"},
    Number{'i', 4, "i", "int32"},        Number{'q', 8, "l", "int64"},   Number{'B', 1, "B", "uint8"},
    Number{'H', 2, "H", "uint16"},       Number{'I', 4, "I", "uint32"},  Number{'Q', 8, "L", "uint64"},
    Number{'f', 4, "f", "float32"},      Number{'d', 8, "d", "float64"}, Number{'F', 8, "Zf", "complex64"},
    Number{'D', 16, "Zd", "complex128"},
};

const Number* find(char letter) noexcept {
  for (const Number& number : kNumbers) {
    if (number.letter == letter) return &number;
  }
  return nullptr;
}

[[noreturn]] void refuse(std::string_view signature) {
  throw Error(Status::invalid_argument, "'" + std::string(signature.substr(0, 100)) + "' is no signature of C++");
}

/// Where the type ends that begins at `at`.
std::size_t end_of(std::string_view text, std::size_t at, int depth) {
  if (at >= text.size() || depth > kDepthMax) refuse(text);
  const char letter = text[at++];
  switch (letter) {
    case 's':
    case 'y':
    case 'x':
    case 'P':
    case 'p': return at;
    case '[':
    case 'l':
    case '{':
    case 'o':
    case 'X': return end_of(text, at, depth + 1);
    case 'm': return end_of(text, end_of(text, at, depth + 1), depth + 1);
    case '#':
      at = text.find(':', at);
      if (at == std::string_view::npos) refuse(text);
      return end_of(text, at + 1, depth + 1);
    case 'A':
    case 'E':
      at = text.find(';', at);
      if (at == std::string_view::npos) refuse(text);
      return at + 1;
    case '(':
      while (at < text.size() && text[at] != ')') at = end_of(text, at, depth + 1);
      if (at >= text.size()) refuse(text);
      return at + 1;
    default:
      if (find(letter) == nullptr) refuse(text);
      return at;
  }
}

}  // namespace

std::string_view next_type(std::string_view& signature) {
  const std::size_t end = end_of(signature, 0, 0);
  const std::string_view type = signature.substr(0, end);
  signature.remove_prefix(end);
  return type;
}

bool is_number(char letter) noexcept { return find(letter) != nullptr; }
std::size_t bytes_of_letter(char letter) noexcept { return find(letter)->bytes; }
std::string_view format_of_letter(char letter) noexcept { return find(letter)->format; }

FixedCount fixed_count(std::string_view type) {
  FixedCount fixed;
  const std::size_t colon = type.find(':');
  const auto [end, error] = std::from_chars(type.data() + 1, type.data() + colon, fixed.count);
  if (error != std::errc{} || end != type.data() + colon || fixed.count > (std::size_t{1} << 32)) refuse(type);
  fixed.item = type.substr(colon + 1);
  return fixed;
}

RunItem run_item(std::string_view item) {
  RunItem run;
  while (item.front() == '#') {
    const FixedCount fixed = fixed_count(item);
    if (run.each > (std::size_t{1} << 32)) refuse(item);  // or the product would wrap
    run.each *= fixed.count;
    ++run.dims;
    item = fixed.item;
  }
  if (!is_number(item.front()) || run.each > (std::size_t{1} << 32)) refuse(item);
  run.letter = item.front();
  return run;
}

std::string types_text(std::string_view signature) {
  std::string text = "(";
  while (!signature.empty()) {
    text += type_text(next_type(signature));
    if (!signature.empty()) text += ", ";
  }
  return text + ")";
}

std::string type_text(std::string_view type) {
  if (const Number* number = find(type.front())) return std::string(number->text);
  std::string_view inner = type.substr(1);
  switch (type.front()) {
    case 's': return "str";
    case 'y': return "bytes";
    case 'x': return "array of any memory";
    case 'X': return "array of " + type_text(inner) + " in host memory";
    case 'P': return "array of chares of Python";
    case 'p': return "chare of Python";
    case '[':
    case 'l': return "list of " + type_text(inner);
    case '{': return "set of " + type_text(inner);
    case 'o': return type_text(inner) + " or None";
    case 'm': {
      const std::string key = type_text(next_type(inner));
      return "dict of " + key + " to " + type_text(inner);
    }
    case '#': {
      const FixedCount fixed = fixed_count(type);
      return std::to_string(fixed.count) + " of " + type_text(fixed.item);
    }
    case '(': return "tuple of " + types_text(inner.substr(0, inner.size() - 1));
    default:
      return (type.front() == 'A' ? "array of chares " : "chare ") + std::string(inner.substr(0, inner.size() - 1));
  }
}

}  // namespace brant::python
