#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/python/view.h"

namespace brant::python {

/// Objects of Python on their way into the bytes of C++'s archive, by a signature. Holds what it will copy until it
/// goes. Everything is checked when it is added: writing cannot fail.
class TypedCall {
 public:
  /// `who`: for errors, as "Block.scale".
  explicit TypedCall(std::string who) : who_(std::move(who)) {}

  /// All arguments of a call. Raises TypeError where number, type or size do not fit.
  void add_arguments(std::string_view signature, nanobind::handle args);
  /// One value, called `what` in errors.
  void add(std::string_view type, nanobind::handle object, const std::string& what);

  /// What travels beside the message.
  struct Data {
    View view;
    bool host_only = false;
  };
  /// In order.
  [[nodiscard]] const std::deque<Data>& data() const noexcept { return data_; }
  /// How large a message is whose first bytes are others'.
  [[nodiscard]] std::size_t bytes_behind(std::size_t before) const noexcept;
  void write_behind(std::size_t before, std::byte* message) const noexcept;

 private:
  struct Piece {
    std::array<std::byte, 16> own;
    const void* bytes = nullptr;  ///< Null: its own.
    std::size_t count = 0;
    std::size_t align = 1;
  };
  struct Value {
    std::string_view type;
    nanobind::handle object;
    const std::string& what;
  };

  [[noreturn]] void refuse(const Value& value, std::string_view why = {}) const;
  template <typename T>
  void add_plain(const T& value);
  void add_bytes(const void* bytes, std::size_t count, std::size_t align = 1);
  std::byte* make(std::size_t count);
  void add_number(const Value& value);
  void add_text(const Value& value);
  void add_byte_string(const Value& value);
  void add_run(const Value& value);
  void add_run_of_array(const Value& value);
  void add_each(const Value& value);
  void add_map(const Value& value);
  void add_parts(const Value& value);
  void add_data(const Value& value);
  void add_proxy(const Value& value);
  void write_number(const Value& value, char letter, std::byte* to) const;
  std::byte* write_run(const Value& value, std::string_view item, std::byte* to) const;

  std::string who_;
  std::vector<Piece> pieces_;
  std::deque<View> views_;
  std::deque<Data> data_;
  std::vector<std::unique_ptr<std::byte[]>> made_;
  std::vector<nanobind::object> kept_;
};

}  // namespace brant::python
