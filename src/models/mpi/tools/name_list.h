#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "brant/mpi/mpi.h"

namespace brant::mpi::tools {

/// The values of a variable that have names: what MPI_T_enum stands for.
struct NameList {
  struct Item {
    int value;
    std::string name;
  };

  /// Nothing: no value has this name.
  [[nodiscard]] std::optional<int> value_of(std::string_view text) const noexcept;

  std::string name;
  std::vector<Item> items;
};

/// The lists of brant's settings. They are there until the process ends.
[[nodiscard]] const NameList& switch_names();
[[nodiscard]] const NameList& path_names();
[[nodiscard]] const NameList& gpu_names();
[[nodiscard]] const NameList& log_names();

/// Null: no list has this handle.
[[nodiscard]] const NameList* find_name_list(MPI_T_enum handle);
[[nodiscard]] MPI_T_enum handle_of_list(const NameList* list) noexcept;

}  // namespace brant::mpi::tools
