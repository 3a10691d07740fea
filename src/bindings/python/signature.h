#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// The text that says of which types of C++ the values in a message are: brant/chare/detail/signature.h has its words.
namespace brant::python {

/// The first type of a signature, which is cut off. Throws InvalidArgument for what is none.
std::string_view next_type(std::string_view& signature);
/// "float64", "list of int32": for people.
std::string type_text(std::string_view type);
/// "(float64, str)".
std::string types_text(std::string_view signature);

[[nodiscard]] bool is_number(char letter) noexcept;
[[nodiscard]] std::size_t bytes_of_letter(char letter) noexcept;
/// The number in the struct module's language, as `View` says it.
[[nodiscard]] std::string_view format_of_letter(char letter) noexcept;

/// "#3:d": how many there are, of which type.
struct FixedCount {
  std::size_t count = 0;
  std::string_view item;
};
FixedCount fixed_count(std::string_view type);

/// A run of numbers: "d", or "#3:d" with its own dimensions. Its number, and how many of them an element has.
struct RunItem {
  char letter = 0;
  std::size_t each = 1;
  std::size_t dims = 0;  ///< Of one element.
};
RunItem run_item(std::string_view item);

}  // namespace brant::python
