#pragma once

#include <vector>

namespace brant::mpi::tools {

/// Variables that belong together, by their indices. They never change.
struct Category {
  const char* name;
  const char* description;
  std::vector<int> controls;
  std::vector<int> performance;
  std::vector<int> categories;
};

/// All of them, by their indices. The first one holds the others.
[[nodiscard]] const std::vector<Category>& categories();

}  // namespace brant::mpi::tools
