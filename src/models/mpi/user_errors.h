#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "brant/mpi/mpi.h"

namespace brant::mpi {

/// Error classes and codes that a program adds, with its texts. They may be added at any time.
class UserErrors {
 public:
  int add_class() { return add(std::nullopt); }
  /// Of a class of the program, or of the standard.
  int add_code(int error_class) { return add(error_class); }
  /// Of what the program has added, and that nothing uses.
  void remove(int code) noexcept { entries_[index(code)].removed = true; }
  /// It has a text, or is a class with codes that are not removed.
  [[nodiscard]] bool is_used(int code) const noexcept {
    const Entry& entry = entries_[index(code)];
    if (!entry.text.empty()) return true;
    return !entry.of_class && std::ranges::any_of(entries_, [code](const Entry& other) {
      return !other.removed && other.of_class == code;
    });
  }
  [[nodiscard]] bool has(int code) const noexcept {
    return code > MPI_ERR_LASTCODE && code <= MPI_ERR_LASTCODE + static_cast<int>(entries_.size()) &&
           !entries_[index(code)].removed;
  }
  [[nodiscard]] int class_of(int code) const noexcept { return entries_[index(code)].of_class.value_or(code); }
  [[nodiscard]] bool is_class(int code) const noexcept { return has(code) && !entries_[index(code)].of_class; }
  std::string& text(int code) noexcept { return entries_[index(code)].text; }
  /// What the attribute MPI_LASTUSEDCODE points to.
  [[nodiscard]] int* last_code() noexcept { return &last_code_; }

 private:
  struct Entry {
    std::optional<int> of_class;  ///< Nothing: it is a class.
    std::string text;
    bool removed = false;
  };
  static std::size_t index(int code) noexcept { return static_cast<std::size_t>(code - MPI_ERR_LASTCODE - 1); }
  int add(std::optional<int> of_class) {
    entries_.push_back({of_class, {}});
    return ++last_code_;
  }

  std::vector<Entry> entries_;
  int last_code_ = MPI_ERR_LASTCODE;
};

}  // namespace brant::mpi
