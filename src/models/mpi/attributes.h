#pragma once

#include <cstddef>
#include <vector>

#include "brant/mpi/mpi.h"

namespace brant::mpi {

/// What a program caches with communicators: a key has functions that are called where a communicator is copied or
/// freed. MPI's types and windows have the same functions with another handle, as wide as this one.
class KeyValues {
 public:
  using Copy = MPI_Comm_copy_attr_function*;
  using Delete = MPI_Comm_delete_attr_function*;
  struct Key {
    Copy copy = nullptr;
    Delete discard = nullptr;
    void* extra = nullptr;
    std::size_t users = 0;  ///< Attributes with this key.
    bool freed = false;     ///< By the program; goes with its last attribute.
  };
  /// The first number of a program's key: above those of the standard.
  static constexpr int kFirst = 1000;

  int create(Copy copy, Delete discard, void* extra);
  /// Null: no such key, or the program freed it.
  [[nodiscard]] Key* find(int number) noexcept;
  /// The same of an attribute that exists.
  [[nodiscard]] Key& at(int number) noexcept { return keys_[static_cast<std::size_t>(number - kFirst)]; }

 private:
  std::vector<Key> keys_;
};

/// The attributes of one object. `handle` is passed to the functions of the keys. What these return that is not
/// MPI_SUCCESS ends the call, and is what it returns.
class Attributes {
 public:
  [[nodiscard]] void* const* find(int number) const noexcept;
  int set(KeyValues& keys, MPI_Comm handle, int number, void* value);
  int remove(KeyValues& keys, MPI_Comm handle, int number) noexcept;
  /// In the reverse order of setting.
  int remove_all(KeyValues& keys, MPI_Comm handle) noexcept;
  /// Into those of another object, which has none yet.
  int copy_to(Attributes& other, KeyValues& keys, MPI_Comm handle) const;

 private:
  struct Entry {
    int number;
    void* value;
  };
  int discard(KeyValues& keys, MPI_Comm handle, std::size_t index) noexcept;

  std::vector<Entry> entries_;
};

}  // namespace brant::mpi
